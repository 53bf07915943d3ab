/**
 * What `/api/status` shows of LMCache's MP servers that post here; snake case as there.
 *
 * Size  bounded: servers by when they were heard last, compartments by their bytes; the totals count all.
 */
export interface CoordinatorStatus {
  readonly endpoint: string;
  /** Null where no coordinator stands behind. */
  readonly forward: {
    readonly endpoint: string;
    /** Since its last answer. */
    readonly failures: number;
    readonly last_answer_age_ms: number | null;
  } | null;
  readonly instance_count: number;
  readonly instances: readonly CoordinatorInstance[];
  readonly compartment_count: number;
  readonly compartments: readonly CoordinatorCompartment[];
  readonly keys: number;
  readonly untracked_keys: number;
  readonly batches: Readonly<Record<string, number>>;
  readonly refused: Readonly<Record<string, number>>;
}

export interface CoordinatorInstance {
  readonly instance_id: string;
  readonly incarnation: number | null;
  readonly last_seq: number;
  /** What is shown is all that it holds. */
  readonly whole: boolean;
  readonly left: boolean;
  readonly last_heard_age_ms: number;
  readonly lost_batches: number;
  readonly restarts: number;
}

/** One tier and backend of one server, or of a pool that several mount. */
export interface CoordinatorCompartment {
  /** Null: a pool. */
  readonly instance_id: string | null;
  readonly tier: 'l1' | 'l2';
  readonly backend: string;
  readonly chunks: number;
  readonly keys: number;
  readonly bytes: number;
  readonly capacity_bytes: number | null;
}
