"""A real Ray cluster of several nodes on this machine, for tests and benches: loopback alone, no dashboard, small stores."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["nodes_of", "ray_cluster"]

STORE_BYTES = 80 << 20  # Ray wants at least 75 MB a node
ENVIRONMENT = {
    "RAY_TMPDIR": "/tmp",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_METRICS_COLLECTION": "0",
    "RAY_memory_monitor_refresh_ms": "0",  # what others do on this machine is no reason to end a test's task
    "RAY_raylet_start_wait_time_s": "120",
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    "RAY_TRAIN_ENABLE_STATE_TRACKING": "0",
    # Threads of gRPC stay in the process after the cluster's end, and its handlers would break what other tests fork.
    "GRPC_ENABLE_FORK_SUPPORT": "0",
}
# A node that was killed refuses connections and is noticed in five seconds; one that is only slow has half a minute.
WATCHFUL = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 5000,
    "health_check_failure_threshold": 5,
}


@contextlib.contextmanager
def ray_cluster(nodes: int = 2, cpus: float = 1, environment: Mapping[str, str] | None = None) -> Iterator[Any]:
    """A head without CPUs and so many nodes beside it, all raylets of their own. Ends all of it at the end of the block.

    What it yields has `address`, `add_node` and `remove_node`; the process itself is not connected.
    """
    before = dict(os.environ)
    os.environ |= ENVIRONMENT | dict(environment or {})
    import ray
    from ray.cluster_utils import Cluster

    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # sockets have short names
    os.makedirs("/tmp/ray", exist_ok=True)  # Ray writes its address there too
    # Ray takes 127.0.0.1 for the address of the network card; the others of 127.0.0.0/8 are this machine just as well.
    common = {"node_ip_address": "127.0.0.2", "object_store_memory": STORE_BYTES, "include_dashboard": False}
    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 0, "temp_dir": folder, "no_monitor": True, "include_log_monitor": False,
            "_system_config": WATCHFUL, **common,
        },
    )  # fmt: skip
    try:
        for _ in range(nodes):
            cluster.add_node(wait=False, num_cpus=cpus, num_gpus=0, **common)
        cluster.wait_for_nodes()
        yield cluster
    finally:
        if ray.is_initialized():
            ray.shutdown()
        cluster.shutdown()
        shutil.rmtree(folder, ignore_errors=True)
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ |= before


def nodes_of(cluster: Any) -> list[Any]:
    """The nodes beside the head."""
    return list(cluster.worker_nodes)
