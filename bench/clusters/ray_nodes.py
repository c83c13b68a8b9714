"""Holds a Ray cluster of two nodes for rigs.py: prints the address, then obeys `remove`, `add` and `end` on its input."""
import sys


def main():
    from ray.cluster_utils import Cluster
    cpus = int(sys.argv[1])
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": cpus, "include_dashboard": False, "object_store_memory": 100 * 1024 * 1024})
    node = cluster.add_node(num_cpus=cpus, object_store_memory=100 * 1024 * 1024)
    cluster.wait_for_nodes()
    print(cluster.address, flush=True)
    for order in sys.stdin:
        if order.strip() == "remove":
            cluster.remove_node(node, allow_graceful=False)
            print("removed", flush=True)
        elif order.strip() == "add":
            node = cluster.add_node(num_cpus=cpus, object_store_memory=100 * 1024 * 1024)
            cluster.wait_for_nodes()
            print("added", flush=True)
        else:
            break
    cluster.shutdown()


if __name__ == "__main__":
    main()
