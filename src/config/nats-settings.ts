/** Settings of the NATS plane, under the names Dynamo gives them. */
import { accountSettings } from './account-settings.ts';
import { integer, natsServers, toggle } from './kinds.ts';
import type { SettingRows } from './setting.ts';

export interface NatsSettings {
  readonly natsServer: readonly string[];
  readonly natsAuthUsername: string | null;
  readonly natsAuthPassword: string | null;
  readonly natsAuthToken: string | null;
  readonly natsAuthNkey: string | null;
  readonly natsAuthCredentialsFile: string | null;
  readonly natsTlsCaCertPath: string | null;
  readonly natsTlsClientCertPath: string | null;
  readonly natsTlsClientKeyPath: string | null;
  readonly natsTlsInsecure: boolean;
  readonly natsStartupConnectTimeoutSeconds: number;
  readonly natsResumeDelayMs: number;
}

const fromEnvironment = accountSettings('NATS');

export const natsSettings: SettingRows<NatsSettings> = {
  natsServer: {
    flag: '--nats-server',
    environment: 'NATS_SERVER',
    kind: natsServers,
    fallback: 'nats://127.0.0.1:4222',
    onlyOnPlane: 'nats',
    help: 'NATS servers of the nats planes',
    remedy: 'Put user and password into NATS_AUTH_USERNAME and NATS_AUTH_PASSWORD',
  },
  natsAuthUsername: fromEnvironment('NATS_AUTH_USERNAME', 'User name for NATS'),
  natsAuthPassword: { ...fromEnvironment('NATS_AUTH_PASSWORD', 'Its password'), secret: true },
  natsAuthToken: {
    ...fromEnvironment('NATS_AUTH_TOKEN', 'Token for NATS, where no user name is given'),
    secret: true,
  },
  natsAuthNkey: {
    ...fromEnvironment('NATS_AUTH_NKEY', 'NKey seed for NATS, where no token is given either'),
    secret: true,
  },
  natsAuthCredentialsFile: fromEnvironment(
    'NATS_AUTH_CREDENTIALS_FILE',
    'Credentials file for NATS, where nothing of the above is given',
    'FILE',
  ),
  natsTlsCaCertPath: fromEnvironment(
    'NATS_TLS_CA_CERT_PATH',
    'Certificate authority of the tls:// servers',
    'FILE',
  ),
  natsTlsClientCertPath: fromEnvironment(
    'NATS_TLS_CLIENT_CERT_PATH',
    'Client certificate for the tls:// servers',
    'FILE',
  ),
  natsTlsClientKeyPath: fromEnvironment('NATS_TLS_CLIENT_KEY_PATH', 'Its private key', 'FILE'),
  natsTlsInsecure: {
    flag: null,
    environment: 'NATS_TLS_INSECURE',
    kind: toggle,
    fallback: 'off',
    help: 'Accept any certificate of the tls:// servers',
    remedy: 'Turn it on for trials only',
  },
  natsStartupConnectTimeoutSeconds: {
    flag: null,
    environment: 'NATS_STARTUP_CONNECT_TIMEOUT_SECONDS',
    kind: integer(1, 86_400, 'SECONDS'),
    fallback: '120',
    help: 'Time without NATS after the start, before a warning',
    remedy: 'Give the seconds after which you want to be told',
  },
  natsResumeDelayMs: {
    flag: '--nats-resume-delay-ms',
    environment: 'KVRELAY_NATS_RESUME_DELAY_MS',
    kind: integer(0, 60_000, 'MS'),
    fallback: '1000',
    onlyOnPlane: 'nats',
    strictLacks: 'sends no message again',
    help: 'Pause after a reconnect, so that subscribers are back before the backlog goes out',
    remedy: 'Give the milliseconds that routers need to subscribe again',
  },
};
