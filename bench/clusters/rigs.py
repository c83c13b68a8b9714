"""A Slurm of one controller and two node daemons, and a Ray cluster of two nodes, on this machine: for `make test-clusters`.

Everything lives below one folder, on ports of its own, and ends with the rig: processes are ended by their ids alone.
"""
import getpass
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def alive(process):
    return process.poll() is None


def wait_for(what, condition, seconds=60):
    end = time.time() + seconds
    while time.time() < end:
        if condition():
            return
        time.sleep(0.2)
    raise RuntimeError(f"{what}: not within {seconds} s")


class Slurm:
    """slurmctld and slurmd n1, n2, with a munged of their own."""
    PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol")

    @classmethod
    def missing(cls):
        path = os.environ["PATH"] + ":/usr/sbin:/sbin"
        return [p for p in cls.PROGRAMS if not shutil.which(p, path=path)]

    def __init__(self, folder, cpus=2):
        self.folder = pathlib.Path(folder)
        self.path = os.environ["PATH"] + ":/usr/sbin:/sbin"
        self.conf = self.folder / "slurm.conf"
        self.processes = {}
        for name in ("state", "spool", "log", "run"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        os.chmod(self.folder, 0o755)
        key = self.folder / "run/munge.key"
        key.write_bytes(os.urandom(128))
        os.chmod(key, 0o400)
        self.key = key
        self.socket = self.folder / "run/munge.socket"
        host, user = socket.gethostname().split(".")[0], getpass.getuser()
        ports = [free_port() for _ in range(3)]
        nodes = "".join(f"NodeName=n{i} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[i]} CPUs={cpus} RealMemory=1000 State=UNKNOWN\n" for i in (1, 2))
        self.conf.write_text(f"""ClusterName=tilewright
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={self.socket}
CryptoType=crypto/munge
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool/%n
SlurmctldPidFile={self.folder}/run/slurmctld.pid
SlurmdPidFile={self.folder}/run/%n.pid
SlurmctldLogFile={self.folder}/log/slurmctld.log
SlurmdLogFile={self.folder}/log/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=1
SlurmdTimeout=8
KillWait=2
ReturnToService=2
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
{nodes}PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
""")

    def environment(self):
        return {**os.environ, "PATH": self.path, "SLURM_CONF": str(self.conf)}

    def _start(self, name, words):
        log = open(self.folder / f"log/{name}.out", "ab")
        self.processes[name] = subprocess.Popen(words, stdout=log, stderr=log, env=self.environment(), start_new_session=True)

    def __enter__(self):
        self._start("munged", ["munged", "--foreground", "--force", f"--socket={self.socket}", f"--key-file={self.key}", f"--pid-file={self.folder}/run/munged.pid",
                               f"--log-file={self.folder}/log/munged.log", f"--seed-file={self.folder}/run/munged.seed"])
        wait_for("munged", self.socket.exists)
        self._start("slurmctld", ["slurmctld", "-D", "-c", "-f", str(self.conf)])
        for node in ("n1", "n2"):
            self.start_node(node)
        wait_for("two nodes that are idle", lambda: self.command("sinfo", "-h", "-o", "%t %D").split() == ["idle", "2"])
        return self

    def start_node(self, node):
        self._start(node, ["slurmd", "-D", "-N", node, "-f", str(self.conf)])

    def take_node_away(self, node):
        """Its daemon and everything that runs on it, at once, as a node that loses power."""
        for pid in self.node_processes(node):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.processes[node].kill()
        self.processes[node].wait()

    def node_processes(self, node):
        """What jobs on this node are: processes with its name in their environment."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if f"SLURMD_NODENAME={node}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    def command(self, *words):
        return subprocess.run(words, capture_output=True, text=True, env=self.environment(), timeout=60).stdout

    def __exit__(self, *_):
        for node in ("n1", "n2"):
            for pid in self.node_processes(node):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        for process in reversed(self.processes.values()):
            if alive(process):
                process.kill()
                process.wait()


class Ray:
    """A head and one more node, each a raylet of its own."""

    def __init__(self, folder, python, cpus=2):
        self.python, self.folder, self.cpus = python, pathlib.Path(folder), cpus
        self.folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self):
        # ray.cluster_utils starts daemons of its own for each node; a helper process holds them and takes orders on its input.
        self.helper = subprocess.Popen([self.python, str(pathlib.Path(__file__).with_name("ray_nodes.py")), str(self.cpus), str(self.folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=open(self.folder / "ray.err", "ab"), text=True, start_new_session=True)
        self.address = self._answer()
        return self

    def _answer(self):
        line = self.helper.stdout.readline().strip()
        if not line:
            raise RuntimeError("the Ray cluster did not start: " + (self.folder / "ray.err").read_text()[-2000:])
        return line

    def take_node_away(self):
        self.helper.stdin.write("remove\n")
        self.helper.stdin.flush()
        return self._answer()

    def add_node(self):
        self.helper.stdin.write("add\n")
        self.helper.stdin.flush()
        return self._answer()

    def __exit__(self, *_):
        try:
            self.helper.stdin.write("end\n")
            self.helper.stdin.flush()
            self.helper.wait(timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            self.helper.kill()
