"""What dynamo_worker.py and dynamo_router.py share: options, the environment, JSON lines, the end.

Kept apart from Dynamo's own imports: its native module reads the environment when it is loaded.
"""
import argparse
import asyncio
import json
import os
import sys


def parser(description):
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--namespace", default="kvrelay")
    options.add_argument("--component", default="backend")
    options.add_argument("--endpoint", default="generate")
    options.add_argument("--discovery", choices=("file", "etcd"), default="file")
    options.add_argument("--discovery-dir", help="exported as DYN_FILE_KV")
    options.add_argument("--etcd-endpoints", help="exported as ETCD_ENDPOINTS")
    options.add_argument("--event-plane", choices=("nats", "zmq"), default="nats")
    options.add_argument("--request-plane", choices=("tcp", "nats"), default="tcp")
    options.add_argument("--nats-server", help="exported as NATS_SERVER")
    options.add_argument("--zmq-broker", help="exported as DYN_ZMQ_BROKER_URL")
    options.add_argument("--block-size", type=int, default=4)
    return options


output = sys.stdout


def export(given):
    global output
    # Dynamo's log can go to standard output as well, into the middle of a long line of ours.
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    variables = {
        "DYN_FILE_KV": given.discovery_dir,
        "ETCD_ENDPOINTS": given.etcd_endpoints,
        "NATS_SERVER": given.nats_server,
        "DYN_ZMQ_BROKER_URL": given.zmq_broker,
    }
    os.environ.update({name: value for name, value in variables.items() if value})
    os.environ.setdefault("DYN_TCP_RPC_HOST", "127.0.0.1")
    os.environ.setdefault("DYN_LOG", "warn")


def runtime(given):
    from dynamo.runtime import DistributedRuntime

    loop = asyncio.get_running_loop()
    started = DistributedRuntime(
        loop, given.discovery, given.request_plane, event_plane=given.event_plane
    )
    return started, started.endpoint(f"{given.namespace}.{given.component}.{given.endpoint}")


def say(state, **fields):
    output.write(json.dumps({"state": state, **fields}) + "\n")
    output.flush()


async def input_lines():
    """Lines of standard input, which closes with the process that started this one."""
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        yield line


async def input_ended():
    async for _ in input_lines():
        pass
