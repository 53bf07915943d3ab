/** Settings of TLS between Dynamo's processes, under the names that those read themselves. */
import { integer, nonEmptyText, toggle } from './kinds.ts';
import type { Setting, SettingRows } from './setting.ts';

export interface TcpTlsSettings {
  /** Of the listener for queries; null: it is plain. */
  readonly tcpTlsCertPath: string | null;
  readonly tcpTlsKeyPath: string | null;
  /** Null: routers need no certificate. */
  readonly tcpTlsClientCaCertPath: string | null;
  /** Of the routers that are called back; null and not insecure: they are called without TLS. */
  readonly tcpTlsCaCertPath: string | null;
  readonly tcpTlsInsecure: boolean;
  readonly tcpTlsClientCertPath: string | null;
  readonly tcpTlsClientKeyPath: string | null;
  /** Null: the address that is called. */
  readonly tcpTlsServerName: string | null;
  readonly tcpTlsHandshakeTimeoutSecs: number;
}

export const tcpTlsSettings: SettingRows<TcpTlsSettings> = {
  tcpTlsCertPath: text('DYN_TCP_TLS_CERT_PATH', 'Certificate of the listener for router queries'),
  tcpTlsKeyPath: text('DYN_TCP_TLS_KEY_PATH', 'Its private key'),
  tcpTlsClientCaCertPath: text(
    'DYN_TCP_TLS_CLIENT_CA_CERT_PATH',
    'Certificate authority of routers, which then have to show a certificate',
  ),
  tcpTlsCaCertPath: text(
    'DYN_TCP_TLS_CA_CERT_PATH',
    'Certificate authority of the addresses that answers go to',
  ),
  tcpTlsInsecure: {
    flag: null,
    environment: 'DYN_TCP_TLS_INSECURE',
    kind: toggle,
    fallback: 'off',
    help: 'Accept any certificate of these',
    remedy: 'Turn it on for trials only',
  },
  tcpTlsClientCertPath: text('DYN_TCP_TLS_CLIENT_CERT_PATH', 'Certificate shown to these'),
  tcpTlsClientKeyPath: text('DYN_TCP_TLS_CLIENT_KEY_PATH', 'Its private key'),
  tcpTlsServerName: text(
    'DYN_TCP_TLS_SERVER_NAME',
    'Name that stands in their certificates, where it is not their address',
    'NAME',
  ),
  tcpTlsHandshakeTimeoutSecs: {
    flag: null,
    environment: 'DYN_TCP_TLS_HANDSHAKE_TIMEOUT_SECS',
    kind: integer(1, 60, 'SECONDS'),
    fallback: '3',
    help: 'Longest time that a TLS handshake takes',
    remedy: 'Leave it out',
  },
};

function text(environment: string, help: string, placeholder = 'FILE'): Setting<string | null> {
  return {
    flag: null,
    environment,
    kind: nonEmptyText(placeholder),
    fallback: null,
    help,
    remedy: "Give what the routers' processes have, or unset it",
  };
}
