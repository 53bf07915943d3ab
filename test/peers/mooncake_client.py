#!/usr/bin/env python3
"""A real Mooncake Store client that does what it is told, for a master that runs already.

    mooncake_client.py --master-port 17054 [--tenant t1] [--segment-bytes N] [--disk FOLDER]

Commands as in peer_commands.py; `keys` may stand in for `key`. Results are the client's own codes, 0 for success.
Killed, it is a client that died with its objects.
"""
from __future__ import annotations

import argparse
import types

from mooncake_master import client, offload_env, with_libraries
from peer_commands import serve, take_over_stdout


def operations(store) -> dict:
    from mooncake.store import ReplicateConfig

    def put(key=None, keys=None, size=100, group=None):
        if group is not None:
            config = ReplicateConfig()
            config.group_ids = [group]
            return store.put(key, b"x" * size, config)
        return store.put_batch(keys, [b"x" * size] * len(keys)) if keys is not None else store.put(key, b"x" * size)

    def remove(key=None, keys=None, force=True):
        return store.batch_remove(keys, force) if keys is not None else store.remove(key, force)

    return {
        "put": put,
        # One by one, as a batch that finds the store full fails where single objects drive out others.
        "put_each": lambda keys, size=100: [store.put(key, b"x" * size) for key in keys],
        "upsert": lambda key, size=100: store.upsert(key, b"u" * size),
        "remove": remove,
        "remove_all": lambda force=True: store.remove_all(force),
        "remove_by_regex": lambda pattern, force=True: store.remove_by_regex(pattern, force),
        # A read takes a lease, which keeps the object from being evicted or removed for a while.
        "read": lambda key: len(store.get(key)),
        "exist": lambda keys: store.batch_is_exist(keys),
    }


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--master-port", type=int, required=True, help="RPC port of the master")
    ap.add_argument("--tenant", default="default")
    ap.add_argument("--segment-bytes", type=int, default=64 << 20, help="memory that this client gives to the store")
    ap.add_argument("--disk", help="folder for copies on disk; the master needs -enable_offload=true")
    a = ap.parse_args()
    if a.disk:
        offload_env(a.disk)
    with_libraries()
    answers = take_over_stdout()
    more = dict(enable_ssd_offload=True, ssd_offload_path=a.disk) if a.disk else {}
    store = client(types.SimpleNamespace(rpc=a.master_port), a.tenant, a.segment_bytes, **more)
    serve(answers, {}, operations(store))
    store.close()


if __name__ == "__main__":
    main()
