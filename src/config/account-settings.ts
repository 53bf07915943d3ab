/** Rows for what logs in to a server: names, secrets, and files that hold them. */
import { nonEmptyText } from './kinds.ts';
import type { Setting } from './setting.ts';

type AccountSetting = (
  environment: string,
  help: string,
  placeholder?: string,
) => Setting<string | null>;

/** Without a flag: what stands on a command line is readable to every process of the host. */
export function accountSettings(service: 'NATS' | 'etcd'): AccountSetting {
  return (environment, help, placeholder = 'TEXT') => ({
    flag: null,
    environment,
    kind: nonEmptyText(placeholder),
    fallback: null,
    help,
    remedy: `Give the value of the ${service} account, or unset it`,
  });
}
