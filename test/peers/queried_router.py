#!/usr/bin/env python
"""A stock Dynamo 1.6.1 KvRouter. Prints JSON lines: overlap scores and the indexer's dump.

{"event":"state","t":..,"overlap":{..},"dump":[..]}  whenever they change (or every poll with --every)
"""
import asyncio
import json

from _common import apply_env, base_parser, emit, wait_until


def parse():
    p = base_parser(__doc__)
    p.add_argument("--tokens", default="1,2,3,4,5,6,7,8", help="token ids for the overlap query")
    p.add_argument("--interval", type=float, default=0.2, help="poll period in seconds")
    p.add_argument("--every", action="store_true", help="print every poll, not only changes")
    p.add_argument("--count", action="store_true", help="only the number of blocks held (for large indexes)")
    p.add_argument("--no-dump", action="store_true", help="overlap scores only (for very large indexes)")
    p.add_argument("--event-threads", type=int, default=4)
    return p.parse_args()


def normal(dump):
    """Order-free view of a dump: sorted list of (worker, rank, tier, parent, block, tokens)."""
    rows = []
    for ev in dump:
        st = ev["event"]["data"].get("stored") if isinstance(ev["event"]["data"], dict) else None
        if not st:
            continue
        parent = st["parent_hash"]
        for b in st["blocks"]:
            rows.append([ev["worker_id"], ev["event"]["dp_rank"], ev.get("storage_tier", "device"),
                         parent, b["block_hash"], b["tokens_hash"]])
            parent = b["block_hash"]
    return sorted(rows, key=lambda r: [x if x is not None else -1 for x in (r[0], r[1])] + [r[2]] +
                  [r[3] if r[3] is not None else -1, r[4], r[5]])


async def main():
    a = parse()
    apply_env(a)
    import dynamo._core as core
    from dynamo.runtime import DistributedRuntime

    tokens = [int(x) for x in a.tokens.split(",") if x.strip()]
    loop = asyncio.get_running_loop()
    rt = DistributedRuntime(loop, a.discovery_backend, a.request_plane, event_plane=a.event_plane)
    ep = rt.endpoint(f"{a.namespace}.{a.component}.{a.endpoint}")
    router = core.KvRouter(ep, a.block_size, core.KvRouterConfig(router_event_threads=a.event_threads))
    emit("router_ready")
    last = None

    async def poll():
        nonlocal last
        while True:
            out = {}
            try:
                out["overlap"] = await router.get_overlap_scores(tokens)
            except Exception as e:  # e.g. no worker yet
                out["overlap_error"] = str(e)
            if not a.no_dump:
                try:
                    raw = await router.dump_events()
                    dump = json.loads(raw) if isinstance(raw, str) else raw
                    if a.count:
                        out["count"] = sum(len(ev["event"]["data"]["stored"]["blocks"]) for ev in dump)
                    else:
                        out["blocks"] = normal(dump)
                        out["dump"] = dump
                except Exception as e:
                    out["dump_error"] = str(e)
            key = json.dumps([out.get("overlap"), out.get("blocks"), out.get("count"),
                              out.get("overlap_error")], default=str,
                             sort_keys=True)
            if a.every or key != last:
                emit("state", **json.loads(json.dumps(out, default=str)))
                last = key
            await asyncio.sleep(a.interval)

    task = asyncio.ensure_future(poll())
    await wait_until(a.seconds)
    task.cancel()
    rt.shutdown()
    emit("router_stopped")


asyncio.run(main())
