/**
 * StandIn: what MP servers are answered besides `POST /events` where no coordinator stands behind.
 *
 * Has      /healthz, and under /instances: register, heartbeat, deregister, and the list that peers read.
 * Lacks    quotas, pins, prefetches, lookups: 404, as in a coordinator that does not know them.
 * Source   LMCache 0.5.6, lmcache/v1/mp_coordinator/http_apis/.
 */
import type { CoordinatorRefusal } from '../../../metrics/coordinator-metrics.ts';
import type { CoordinatorView } from './coordinator-view.ts';
import { instanceIdOf, Members } from './members.ts';

export interface StandInAnswer {
  readonly status: number;
  /** Null: no body. */
  readonly value: object | null;
  readonly refusal?: CoordinatorRefusal;
  readonly headers?: Readonly<Record<string, string>>;
}

const INSTANCE_PATH = /^\/instances\/([^/]+)(\/heartbeat)?$/;
const METHODS = new Map([
  ['/events', ['POST']],
  ['/healthz', ['GET']],
  ['/instances', ['GET', 'POST']],
]);

/** Which server a path is about; null: none that there could be. */
export function instancePathOf(path: string): { instanceId: string | null; isHeartbeat: boolean } {
  const [, name, heartbeat] = INSTANCE_PATH.exec(path) ?? [];
  return {
    instanceId: instanceIdOf(decoded(name ?? '') ?? ''),
    isHeartbeat: heartbeat !== undefined,
  };
}

/** Who registers with such a body; null where it names nobody. */
export function registeredIdOf(body: Buffer): string | null {
  const fields = jsonOf(body);
  if (typeof fields !== 'object' || fields === null || !('instance_id' in fields)) return null;
  const { instance_id: id } = fields;
  return typeof id === 'string' ? instanceIdOf(id.trim()) : null;
}

export class StandIn {
  readonly members: Members = new Members();
  readonly #view: CoordinatorView;

  constructor(view: CoordinatorView) {
    this.#view = view;
  }

  answer(method: string, path: string, body: Buffer): StandInAnswer {
    const { instanceId, isHeartbeat } = instancePathOf(path);
    const allowed = instanceId === null ? METHODS.get(path) : [isHeartbeat ? 'PUT' : 'DELETE'];
    if (allowed === undefined) return refused(404, 'unknown_path', 'Not Found');
    if (!allowed.includes(method)) {
      const headers = { Allow: allowed.join(', ') };
      return { ...refused(405, 'method', 'Method Not Allowed'), headers };
    }
    if (instanceId !== null) {
      return isHeartbeat ? this.#heartbeat(instanceId) : this.#leave(instanceId);
    }
    if (path === '/healthz') return { status: 200, value: { status: 'healthy' } };
    if (method === 'GET') return { status: 200, value: this.members.list() };
    return this.#register(body);
  }

  #register(body: Buffer): StandInAnswer {
    const registered = this.members.register(jsonOf(body), Date.now());
    if (registered === null) return refused(422, 'invalid', 'No registration');
    if (registered === 'full') return refused(503, 'busy', 'Too many instances');
    this.#view.noteRegistration(registered.instance_id);
    return { status: 200, value: registered };
  }

  /** Who is not known registers again, and then tells its capacities again. */
  #heartbeat(instanceId: string): StandInAnswer {
    if (!this.members.has(instanceId)) {
      return { status: 404, value: { error: `unknown instance ${instanceId}; re-register` } };
    }
    this.#view.noteMember(instanceId);
    return { status: 200, value: { instance_id: instanceId } };
  }

  #leave(instanceId: string): StandInAnswer {
    this.members.remove(instanceId);
    this.#view.leave(instanceId);
    return { status: 204, value: null };
  }
}

function refused(status: number, refusal: CoordinatorRefusal, detail: string): StandInAnswer {
  return { status, value: { detail }, refusal };
}

/** Null where it is no percent-encoded text. */
function decoded(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}

function jsonOf(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return null;
  }
}
