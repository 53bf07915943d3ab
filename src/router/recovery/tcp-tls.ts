/**
 * TLS of router queries: on the listener for questions, and on the connections over which answers go.
 *
 * Files    are read once, at the start.
 * Names    a router is called by its address, which its certificate has to hold, unless a name is given.
 * Source   ai-dynamo/dynamo 1.6.1, DYN_TCP_TLS_*.
 */
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { type ConnectionOptions, checkServerIdentity, type TlsOptions } from 'node:tls';

/** The settings of the same names. */
export interface TcpTlsAccess {
  readonly tcpTlsCertPath: string | null;
  readonly tcpTlsKeyPath: string | null;
  readonly tcpTlsClientCaCertPath: string | null;
  readonly tcpTlsCaCertPath: string | null;
  readonly tcpTlsInsecure: boolean;
  readonly tcpTlsClientCertPath: string | null;
  readonly tcpTlsClientKeyPath: string | null;
  readonly tcpTlsServerName: string | null;
  readonly tcpTlsHandshakeTimeoutSecs: number;
}

export interface TcpTls {
  /** Null: routers ask without TLS. */
  readonly listener: TlsOptions | null;
  /** Null: answers go without TLS. */
  readonly answers: ConnectionOptions | null;
}

/** Throws where a file that is named cannot be read. */
export function readTcpTls(access: TcpTlsAccess): TcpTls {
  return { listener: listenerOptions(access), answers: answerOptions(access) };
}

function listenerOptions(access: TcpTlsAccess): TlsOptions | null {
  const { tcpTlsCertPath: certFile, tcpTlsKeyPath: keyFile, tcpTlsClientCaCertPath } = access;
  if (certFile === null || keyFile === null) return null;
  return {
    cert: readFileSync(certFile),
    key: readFileSync(keyFile),
    handshakeTimeout: access.tcpTlsHandshakeTimeoutSecs * 1000,
    ...(tcpTlsClientCaCertPath !== null && {
      ca: readFileSync(tcpTlsClientCaCertPath),
      requestCert: true,
      rejectUnauthorized: true,
    }),
  };
}

function answerOptions(access: TcpTlsAccess): ConnectionOptions | null {
  const { tcpTlsCaCertPath: caFile, tcpTlsInsecure: isInsecure, tcpTlsServerName: name } = access;
  const { tcpTlsClientCertPath: certFile, tcpTlsClientKeyPath: keyFile } = access;
  if (caFile === null && !isInsecure) return null;
  return {
    rejectUnauthorized: !isInsecure,
    ...(caFile !== null && { ca: readFileSync(caFile) }),
    ...(certFile !== null && { cert: readFileSync(certFile) }),
    ...(keyFile !== null && { key: readFileSync(keyFile) }),
    // An address is not sent as a name, but stands in a certificate all the same.
    ...(name !== null && isIP(name) === 0 && { servername: name }),
    ...(name !== null && {
      checkServerIdentity: (
        _host: string,
        certificate: Parameters<typeof checkServerIdentity>[1],
      ) => checkServerIdentity(name, certificate),
    }),
  };
}
