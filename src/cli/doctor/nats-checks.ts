/** NATS as an event plane: is it there, are we let in, what does it take. Nothing is published. */
import { connect, type NatsConnection } from 'nats';
import { natsClientOptions } from '../../connections/nats-access.ts';
import { errorCode, messageOf } from '../../errors.ts';
import { type Check, fail, ok, skipped, warn } from './check.ts';
import { orEnd, type ProbeContext } from './context.ts';

const CONNECT_MS = 3000;

const CREDENTIALS =
  'Give the account in NATS_AUTH_USERNAME and _PASSWORD, _TOKEN, _NKEY or _CREDENTIALS_FILE';
const START = 'Start the server, and give its address with --nats-server';
const TLS =
  'Write tls:// where the server wants TLS, and give its authority in NATS_TLS_CA_CERT_PATH';

const FAILURES: Readonly<Record<string, readonly [problem: string, remedy: string]>> = {
  CONNECTION_REFUSED: ['nobody listens there', START],
  ENOTFOUND: ['the host name is not known', START],
  TIMEOUT: ['no answer in time', START],
  AUTHORIZATION_VIOLATION: ['the server refuses the account', CREDENTIALS],
  AUTHENTICATION_EXPIRED: ['the account has expired', CREDENTIALS],
  ACCOUNT_EXPIRED: ['the account has expired', CREDENTIALS],
  BAD_AUTHENTICATION: ['the server wants an account of another kind', CREDENTIALS],
  BAD_CREDS: ['the credentials file cannot be used', CREDENTIALS],
  TLS: ['TLS cannot be agreed upon', TLS],
};

/** A connection that is not tried twice; rejects as the client does. */
export async function connectOnce({ config }: ProbeContext): Promise<NatsConnection> {
  return connect({
    name: 'kvrelay doctor',
    timeout: CONNECT_MS,
    reconnect: false,
    maxReconnectAttempts: 0,
    ...natsClientOptions(config.natsServer, config),
  });
}

export async function natsChecks(context: ProbeContext): Promise<Check[]> {
  const { natsServer, maxMessageBytes } = context.config;
  const [name, payload] = ['nats_server', 'nats_max_payload'] as const;
  const servers = natsServer.join(', ');
  let client: NatsConnection | null = null;
  try {
    client = await orEnd(connectOnce(context), context.ended);
    if (client === null) throw new Error('no answer in time');
    const { version = '?', max_payload: maxPayload = 0 } = client.info ?? {};
    const reached = ok(name, `NATS ${version} lets us in at ${client.getServer()}`);
    if (maxPayload >= maxMessageBytes) {
      return [
        reached,
        ok(payload, `messages of ${maxPayload} bytes pass, ours have up to ${maxMessageBytes}`),
      ];
    }
    const text = `the server takes ${maxPayload} bytes, so messages are cut to that instead of ${maxMessageBytes}`;
    const remedy = `Raise max_payload on the server to ${maxMessageBytes}, or lower --max-message-bytes`;
    return [reached, warn(payload, text, remedy)];
  } catch (error) {
    const [problem, remedy] = failureOf(error);
    return [
      fail(name, `${servers}: ${problem}`, remedy),
      skipped(payload, 'there is no connection to the server'),
    ];
  } finally {
    await client?.close();
  }
}

function failureOf(error: unknown): readonly [problem: string, remedy: string] {
  const found = FAILURES[errorCode(error)];
  if (found !== undefined) return found;
  const message = messageOf(error);
  return /tls|certificate|ssl/i.test(message) ? [message, TLS] : [message, START];
}
