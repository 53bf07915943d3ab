/**
 * What a NATS server can ask a client for, made anew for each test: certificates, keys, credentials.
 * Files lie in a folder that goes with the test.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nkeys } from 'nats';
import { onTestFinished } from 'vitest';

type KeyPair = ReturnType<typeof nkeys.createUser>;

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'kvrelay-identities-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export interface Certificates {
  readonly caCert: string;
  readonly serverCert: string;
  readonly serverKey: string;
  readonly clientCert: string;
  readonly clientKey: string;
}

/** An authority, and by it a server's certificate for `localhost` and 127.0.0.1, and a client's. */
export function createCertificates(): Certificates {
  const folder = temporaryFolder();
  const path = (name: string): string => join(folder, name);
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const authority = ['-CA', path('ca.pem'), '-CAkey', path('ca.key'), '-CAcreateserial'];
  const caFiles = ['-keyout', path('ca.key'), '-out', path('ca.pem')];
  openssl('req', '-x509', ...key, '-days', '2', '-subj', '/CN=trial authority', ...caFiles);
  for (const name of ['server', 'client']) {
    const files = ['-keyout', path(`${name}.key`), '-out', path(`${name}.csr`)];
    openssl('req', ...key, '-subj', `/CN=${name}`, ...files);
    writeFileSync(path(`${name}.ext`), 'subjectAltName=DNS:localhost,IP:127.0.0.1\n');
    const signed = ['-out', path(`${name}.pem`), '-extfile', path(`${name}.ext`), '-days', '2'];
    openssl('x509', '-req', '-in', path(`${name}.csr`), ...authority, ...signed);
  }
  return {
    caCert: path('ca.pem'),
    serverCert: path('server.pem'),
    serverKey: path('server.key'),
    clientCert: path('client.pem'),
    clientKey: path('client.key'),
  };
}

const OPENSSL = 'openssl';

function openssl(...args: string[]): void {
  const { status, stderr, error } = spawnSync(OPENSSL, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`openssl ${args[0]}: ${error?.message ?? stderr}`);
}

export interface NkeyUser {
  readonly seed: string;
  readonly publicKey: string;
}

export function createNkeyUser(): NkeyUser {
  const user = nkeys.createUser();
  return { seed: seedOf(user), publicKey: user.getPublicKey() };
}

export interface CredentialsSetup {
  /** Lines of the server's configuration: its operator, and one account. */
  readonly serverConfig: string;
  /** Path of the credentials file of one user of that account. */
  readonly credentialsFile: string;
  readonly seed: string;
  readonly jwt: string;
}

/** Operator, account and user, as NATS's own tools would write them. */
export function createCredentials(): CredentialsSetup {
  const [operator, account, user] = [
    nkeys.createOperator(),
    nkeys.createAccount(),
    nkeys.createUser(),
  ];
  const anyNumber = { subs: -1, data: -1, payload: -1 };
  const limits = { ...anyNumber, imports: -1, exports: -1, conn: -1, leaf: -1, wildcards: true };
  const operatorJwt = signed(operator, operator, { type: 'operator', version: 2 });
  const accountJwt = signed(operator, account, { type: 'account', version: 2, limits });
  const userJwt = signed(account, user, { type: 'user', version: 2, ...anyNumber });
  const credentialsFile = join(temporaryFolder(), 'relay.creds');
  writeFileSync(
    credentialsFile,
    `${section('NATS USER JWT', userJwt)}\n${section('USER NKEY SEED', seedOf(user))}`,
  );
  return {
    serverConfig: [
      `operator: ${operatorJwt}`,
      'resolver: MEMORY',
      `resolver_preload: { ${account.getPublicKey()}: ${accountJwt} }`,
    ].join('\n'),
    credentialsFile,
    seed: seedOf(user),
    jwt: userJwt,
  };
}

function section(name: string, text: string): string {
  return `-----BEGIN ${name}-----\n${text}\n------END ${name}------\n`;
}

function signed(issuer: KeyPair, subject: KeyPair, nats: Record<string, unknown>): string {
  const claims = {
    jti: subject.getPublicKey(),
    iat: Math.floor(Date.now() / 1000),
    iss: issuer.getPublicKey(),
    sub: subject.getPublicKey(),
    name: 'trial',
    nats,
  };
  const parts = [{ typ: 'JWT', alg: 'ed25519-nkey' }, claims].map((part) =>
    Buffer.from(JSON.stringify(part)).toString('base64url'),
  );
  const text = parts.join('.');
  return `${text}.${Buffer.from(issuer.sign(Buffer.from(text))).toString('base64url')}`;
}

function seedOf(pair: KeyPair): string {
  return Buffer.from(pair.getSeed()).toString();
}
