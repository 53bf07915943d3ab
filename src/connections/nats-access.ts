/** Servers, authentication and TLS of a NATS connection, under the rules Dynamo has for them. */
import { readFileSync } from 'node:fs';
import { type ConnectionOptions, credsAuthenticator, nkeyAuthenticator } from 'nats';

export interface NatsAccess {
  /** `nats://` or `tls://` addresses. */
  readonly servers: readonly string[];
  readonly username: string | null;
  readonly password: string | null;
  readonly token: string | null;
  readonly nkey: string | null;
  readonly credentialsFile: string | null;
  readonly caCertPath: string | null;
  readonly clientCertPath: string | null;
  readonly clientKeyPath: string | null;
  /** Any certificate is taken. */
  readonly isInsecure: boolean;
}

/** Throws where a file that is named cannot be read. */
export function natsClientOptions(access: NatsAccess): ConnectionOptions {
  const { servers, caCertPath, clientCertPath, clientKeyPath, isInsecure } = access;
  const isTls = servers.some((server) => server.startsWith('tls://'));
  return {
    servers: servers.map((server) => server.replace(/^(nats|tls):\/\//, '')),
    ...authentication(access),
    ...(isTls && {
      tls: {
        ...(caCertPath !== null && { caFile: caCertPath }),
        ...(clientCertPath !== null && { certFile: clientCertPath }),
        ...(clientKeyPath !== null && { keyFile: clientKeyPath }),
        // Handed on to Node's TLS as it is, though the client's types do not name it.
        ...(isInsecure && { rejectUnauthorized: false }),
      },
    }),
  };
}

/** The first method that is configured, in Dynamo's order. */
function authentication(access: NatsAccess): ConnectionOptions {
  const { username, password, token, nkey, credentialsFile } = access;
  if (username !== null) return { user: username, ...(password !== null && { pass: password }) };
  if (token !== null) return { token };
  if (nkey !== null) {
    return { authenticator: nkeyAuthenticator(new TextEncoder().encode(nkey)) };
  }
  if (credentialsFile === null) return {};
  return { authenticator: credsAuthenticator(readFileSync(credentialsFile)) };
}
