/**
 * Members: the MP servers that have registered here, as `GET /instances` lists them to their peers. Only where
 * no coordinator stands behind.
 *
 * Bounds   members, characters and pairs of what they say of themselves, bytes of the list.
 * Source   LMCache 0.5.6, lmcache/v1/mp_coordinator/http_apis/instances_api.py and schemas.py.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { MAX_INSTANCES } from './instances.ts';

const MAX_ID_CHARACTERS = 256;
/** Of all that members say of themselves, as it is listed in one answer. */
const MAX_LISTED_BYTES = 1 << 20;

const text = z.string().trim().max(MAX_ID_CHARACTERS);

const registration = z.object({
  instance_id: text.refine((id) => id === '' || instanceIdOf(id) !== null).default(''),
  ip: text.min(1),
  http_port: z.int().min(1).max(65_535),
  metadata: z
    .record(z.string().max(256), z.string().max(1024))
    .refine((pairs) => Object.keys(pairs).length <= 64)
    .default({}),
  p2p_advertised_url: z.string().trim().max(1024).default(''),
  mq_port: z.int().min(0).max(65_535).default(0),
});

interface Member extends z.infer<typeof registration> {
  /** Seconds of the clock. */
  readonly registration_time: number;
}

/** As batches may name a server too; null: nobody is called so. */
export function instanceIdOf(id: string): string | null {
  // Half a surrogate pair is no text that could be told on.
  return id === '' || id.length > MAX_ID_CHARACTERS || /\p{Cs}/u.test(id) ? null : id;
}

export class Members {
  readonly #members = new Map<string, { readonly member: Member; readonly bytes: number }>();
  #listedBytes = 0;

  /** Null where the body is no registration; `full` where there are too many. */
  register(
    body: unknown,
    nowMs: number,
  ): { instance_id: string; re_registered: boolean } | 'full' | null {
    const checked = registration.safeParse(body);
    if (!checked.success) return null;
    const instance_id = checked.data.instance_id || `mp-${randomUUID().replaceAll('-', '')}`;
    const re_registered = this.#members.has(instance_id);
    const member: Member = { ...checked.data, instance_id, registration_time: nowMs / 1000 };
    const bytes = Buffer.byteLength(JSON.stringify(member));
    if (!re_registered && this.#members.size >= MAX_INSTANCES) return 'full';
    const listedBytes = this.#listedBytes - this.#bytesOf(instance_id) + bytes;
    if (listedBytes > MAX_LISTED_BYTES) return 'full';
    this.#members.set(instance_id, { member, bytes });
    this.#listedBytes = listedBytes;
    return { instance_id, re_registered };
  }

  has(instanceId: string): boolean {
    return this.#members.has(instanceId);
  }

  remove(instanceId: string): void {
    this.#listedBytes -= this.#bytesOf(instanceId);
    this.#members.delete(instanceId);
  }

  /** Those that `isMember` does not know go. */
  sweep(isMember: (instanceId: string) => boolean): void {
    for (const instanceId of this.#members.keys()) {
      if (!isMember(instanceId)) this.remove(instanceId);
    }
  }

  list(): object {
    return { instances: [...this.#members.values()].map(({ member }) => member) };
  }

  #bytesOf(instanceId: string): number {
    return this.#members.get(instanceId)?.bytes ?? 0;
  }
}
