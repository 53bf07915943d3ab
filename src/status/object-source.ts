/** ObjectSource: what stores hold, as the worker tells it over HTTP. */
export interface ObjectSource {
  /** Null where there is no store. */
  objects(): ObjectListing | null;
}

export interface ObjectFilterTexts {
  readonly source: string | null;
  readonly backendId: string | null;
  readonly tenantId: string | null;
  /** Keys begin with it. */
  readonly prefix: string | null;
}

/** As of now; its pages are made as they are read. */
export interface ObjectListing {
  /** Of the event stream, decimal. */
  readonly publisherId: string;
  /** Of the newest event, decimal; 0 before the first. */
  readonly lastEventId: string;
  pages(filter: ObjectFilterTexts): Iterable<readonly object[]>;
  /** The JSON of a range of events. */
  range(
    start: number | null,
    end: number | null,
    bounds: { readonly maxEvents: number; readonly maxBytes: number },
  ): object;
}
