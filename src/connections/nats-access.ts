/** Servers, authentication and TLS of a NATS connection, under the rules Dynamo has for them. */
import { readFileSync } from 'node:fs';
import { type ConnectionOptions, credsAuthenticator, nkeyAuthenticator } from 'nats';

/** The settings of the same names. */
export interface NatsAccess {
  readonly natsAuthUsername: string | null;
  readonly natsAuthPassword: string | null;
  readonly natsAuthToken: string | null;
  readonly natsAuthNkey: string | null;
  readonly natsAuthCredentialsFile: string | null;
  readonly natsTlsCaCertPath: string | null;
  readonly natsTlsClientCertPath: string | null;
  readonly natsTlsClientKeyPath: string | null;
  /** Any certificate is taken. */
  readonly natsTlsInsecure: boolean;
}

/** `servers` are `nats://` or `tls://` addresses. Throws where a file that is named cannot be read. */
export function natsClientOptions(
  servers: readonly string[],
  access: NatsAccess,
): ConnectionOptions {
  const {
    natsTlsCaCertPath: caFile,
    natsTlsClientCertPath: certFile,
    natsTlsClientKeyPath: keyFile,
    natsTlsInsecure: isInsecure,
  } = access;
  const isTls = servers.some((server) => server.startsWith('tls://'));
  return {
    servers: servers.map((server) => server.replace(/^(nats|tls):\/\//, '')),
    ...authentication(access),
    ...(isTls && {
      tls: {
        ...(caFile !== null && { caFile }),
        ...(certFile !== null && { certFile }),
        ...(keyFile !== null && { keyFile }),
        // Handed on to Node's TLS as it is, though the client's types do not name it.
        ...(isInsecure && { rejectUnauthorized: false }),
      },
    }),
  };
}

/** The first method that is configured, in Dynamo's order. */
function authentication(access: NatsAccess): ConnectionOptions {
  const {
    natsAuthUsername: username,
    natsAuthPassword: password,
    natsAuthToken: token,
    natsAuthNkey: nkey,
    natsAuthCredentialsFile: credentialsFile,
  } = access;
  if (username !== null) return { user: username, ...(password !== null && { pass: password }) };
  if (token !== null) return { token };
  if (nkey !== null) {
    return { authenticator: nkeyAuthenticator(new TextEncoder().encode(nkey)) };
  }
  if (credentialsFile === null) return {};
  return { authenticator: credsAuthenticator(readFileSync(credentialsFile)) };
}
