"""A throw-away Slurm: two nodes with two pretend GPUs each, on this machine and for one test.

It needs root and Debian's `slurmctld slurmd slurm-client munge`; no systemd, no cgroups, no
accounting. It listens on loopback and writes into a folder of its own. Each node has its own host
name, and `local` in that folder is one path with other contents on each node, as a disk of the
node is. Every process is known by its id, or by the namespace that its node has.
"""

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

NODES = ("n1", "n2")
GPUS = 2  # a node
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged", "unshare")

CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={root}/munge/socket,cred_expire=10
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool.%n
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd.%n.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
# A job over its memory is killed, which without cgroups is found by looking every second.
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SwitchType=switch/none
MailProg=/bin/true
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
# As many cores and as much memory as a node has, whatever this machine has.
SlurmdParameters=config_overrides
ReturnToService=2
# A node that is silent for so many seconds is lost.
SlurmdTimeout=10
SlurmctldTimeout=30
MessageTimeout=10
KillWait=2
MinJobAge=3600
JobRequeue=1
GresTypes=gpu
"""
PARTITION = "PartitionName=gpu Nodes=n1,n2 Default=YES MaxTime=600 DefaultTime=10 State=UP\n"
NODE = "NodeName={0} NodeHostname={0} NodeAddr=127.0.0.1 Port={1} CPUs=12 RealMemory=64000 "
NODE += "Gres=gpu:{2}:{3} State=UNKNOWN\n"
GRES = "NodeName={0} Name=gpu Type={1} File={2}/gpu[0-{3}]\n"


def unable() -> str:
    """Why no Slurm can be started here, '' where it can."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"needs Slurm: there is no {', '.join(missing)} (.ci/run installs it)"
    if importlib.util.find_spec("snakemake_executor_plugin_slurm") is None:
        return "needs the packages of envs/cluster.txt (make test-cluster installs them)"
    if os.getuid():
        return "needs root, for nodes with host names and disks of their own"
    done = subprocess.run(["unshare", "--mount", "--uts", "true"], capture_output=True, text=True)
    return f"needs namespaces: {done.stderr.strip()}" if done.returncode else ""


class Slurm:
    """Started on entry, stopped on exit.

    `models` are the GPUs of the first and the second node, as Slurm names them; with `local_kb`
    the first node's disk has room for no more than that; `conf` is added to `slurm.conf`.
    """

    def __init__(
        self, models: tuple[str, str] = ("h200", "h200"), local_kb: int = 0, conf: str = ""
    ):
        self.models, self.local_kb, self.conf = models, local_kb, conf
        self.processes: dict[str, subprocess.Popen] = {}
        self.users: list[subprocess.Popen] = []  # of this Slurm, each with a process group
        # Held open, or the kernel gives a lost node's number to the next namespace, of anyone.
        self.namespaces: dict[str, list[int]] = {node: [] for node in NODES}

    def __enter__(self) -> "Slurm":
        self.root = Path(tempfile.mkdtemp(prefix="veff-slurm-"))
        self.root.chmod(0o755)  # munged wants it
        self.environment = os.environ | {"SLURM_CONF": str(self.root / "etc/slurm.conf")}
        try:
            self._configure()
            self._start_munge()
            self.start_controller()
            for node in NODES:
                self.start_node(node)
            wait(lambda: self.states() == ["idle", "idle"], "nodes")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        for user in self.users:
            if user.poll() is None:  # the test failed
                os.killpg(user.pid, signal.SIGKILL)
                user.wait()
        for node in NODES:
            self.lose_node(node)
            for space in self.namespaces[node]:
                os.close(space)
        for name in list(self.processes):
            self._stop(name, signal.SIGTERM)
        shutil.rmtree(self.root, ignore_errors=True)

    def local(self, node: str) -> Path:
        """The disk of a node: what it sees as `local`."""
        return self.root / f"disk.{node}"

    def run(self, *command: str) -> str:
        """What a command of Slurm prints; raises `AssertionError` where it fails."""
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def states(self) -> list[str]:
        """Of both nodes: idle, mix, down*, …"""
        return self.run("sinfo", "-h", "-N", "-p", "gpu", "-o", "%t").split()

    def start_controller(self) -> None:
        self._start("slurmctld", ["slurmctld", "-D", "-f", self.environment["SLURM_CONF"]])
        wait(lambda: "is UP" in self.run("scontrol", "ping"), "slurmctld")

    def lose_controller(self) -> None:
        self._stop("slurmctld", signal.SIGKILL)

    def start_node(self, node: str) -> None:
        # Own host name, own `local`; the configuration is where the nodes of a cluster have it.
        script = """
            hostname "$1"
            mount --bind "$2/disk.$1" "$2/local"
            if [ "$3" != 0 ]; then mount -t tmpfs -o size="$3k" none "$2/local"; fi
            mount --bind "$2/hosts" /etc/hosts
            mount --bind "$2/etc" /etc/slurm
            exec slurmd -D -N "$1"
        """
        own = ["unshare", "--mount", "--uts", "--propagation", "private", "--"]
        size = str(self.local_kb if node == NODES[0] else 0)
        self._start(node, [*own, "sh", "-ec", script, "sh", node, str(self.root), size])
        namespace = f"/proc/{self.processes[node].pid}/ns/mnt"
        ours = os.stat("/proc/self/ns/mnt")
        wait(lambda: not os.path.samestat(os.stat(namespace), ours), f"{node}'s own namespace")
        self.namespaces[node].append(os.open(namespace, os.O_RDONLY))

    def on(self, node: str) -> dict[int, str]:
        """All processes of a node: the name of each by its id."""
        found = {}
        spaces = [os.fstat(one) for one in self.namespaces[node]]
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it ended meanwhile
                space = os.stat(process / "ns/mnt")
                if any(os.path.samestat(space, one) for one in spaces):
                    found[int(process.name)] = (process / "comm").read_text().strip()
        return found

    def lose_node(self, node: str) -> None:
        """Everything that runs on the node is gone at once, as when it loses power."""
        for process in self.on(node):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.lose_slurmd(node)

    def lose_slurmd(self, node: str) -> None:
        """Only Slurm's own process is gone from the node; the jobs on it go on."""
        self._stop(node, signal.SIGKILL)

    def _configure(self) -> None:
        etc = self.root / "etc"
        for name in ("etc", "munge", "state", "local", *(f"disk.{node}" for node in NODES)):
            (self.root / name).mkdir()
        ports = free_ports(1 + len(NODES))
        host = socket.gethostname().split(".")[0]
        conf = CONF.format(host=host, port=ports[0], root=self.root)
        gres = "AutoDetect=off\n"
        hosts = Path("/etc/hosts").read_text()
        for node, model, port in zip(NODES, self.models, ports[1:], strict=True):
            (self.root / f"spool.{node}").mkdir()
            conf += NODE.format(node, port, model, GPUS)
            gres += GRES.format(node, model, self.root, GPUS - 1)
            hosts += f"127.0.0.1 {node}\n"
            # What the driver there says of the GPUs (tests/cluster/node/sitecustomize.py).
            names = "; ".join([f"NVIDIA {model.upper()}"] * GPUS)
            (self.root / f"gpus.{node}").write_text(names)
        for number in range(GPUS):
            # Slurm counts device files; these are /dev/null.
            os.mknod(self.root / f"gpu{number}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        (etc / "slurm.conf").write_text(conf + PARTITION + self.conf.format(root=self.root))
        (etc / "gres.conf").write_text(gres)
        (etc / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")  # not used, but looked for
        (self.root / "hosts").write_text(hosts)

    def _start_munge(self) -> None:
        folder = self.root / "munge"
        folder.chmod(0o711)
        key, socket_file = folder / "key", folder / "socket"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        files = {"socket": socket_file, "key-file": key, "pid-file": folder / "pid"}
        files |= {"log-file": folder / "log", "seed-file": folder / "seed"}
        options = [f"--{name}={path}" for name, path in files.items()]
        self._start("munged", ["munged", "--foreground", *options])
        wait(socket_file.exists, "munged")

    def _start(self, name: str, command: list[str]) -> None:
        with (self.root / f"{name}.out").open("a") as out:
            self.processes[name] = subprocess.Popen(
                command,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _stop(self, name: str, how: signal.Signals) -> None:
        process = self.processes.pop(name, None)
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait(until: Callable[[], bool], what: str, seconds: float = 30) -> None:
    """Look until it is so; raises `AssertionError` naming `what` where it does not come."""
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(AssertionError):  # a command that fails as yet
            if until():
                return
        assert time.monotonic() < end, f"waited {seconds:g} s in vain for {what}"
        time.sleep(0.1)


def free_ports(n: int) -> list[int]:
    sockets = [socket.socket() for _ in range(n)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
