"""What executor plugins would submit: `described.py PROFILE [snakemake's options]`.

Plans the run with a profile, and has the plugin's own code describe the first job of each rule, in
place of a cloud or scheduler that would take the description. Prints JSON: by rule, a text.
"""

import json
import logging
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import yaml
from snakemake import cli
from snakemake.executors import dryrun

described = {}


def googlebatch(job):
    from snakemake_executor_plugin_googlebatch import ExecutorSettings
    from snakemake_executor_plugin_googlebatch.executor import GoogleBatchExecutor

    executor = object.__new__(GoogleBatchExecutor)
    settings = {"memory": 15000, "cpu_milli": 4000, "machine_type": "n2-standard-4"}
    executor.executor_settings = ExecutorSettings(**settings)
    rules = SimpleNamespace(is_preemptible=lambda rule: False)
    remote = SimpleNamespace(preemptible_rules=rules)
    executor.workflow = SimpleNamespace(remote_execution_settings=remote)
    return executor.get_allocation_policy(job)


def aws_batch(job):
    from snakemake_executor_plugin_aws_batch import ExecutorSettings
    from snakemake_executor_plugin_aws_batch.batch_job_builder import BatchJobBuilder

    taken = []
    client = SimpleNamespace(register_job_definition=lambda **definition: taken.append(definition))
    settings = ExecutorSettings(job_role="role", job_queue="queue")
    log = logging.getLogger()
    BatchJobBuilder(log, job, {}, "image", settings, "true", client).build_job_definition()
    return taken[0]["containerProperties"]["resourceRequirements"]


def kubernetes(job):
    import kubernetes.client
    from snakemake_executor_plugin_kubernetes import Executor

    taken = []
    executor = object.__new__(Executor)
    vars(executor).update(
        format_job_exec=lambda job: "true",
        run_namespace="run",
        container_image="image",
        persistent_volumes=[],
        k8s_cpu_scalar=1.0,
        k8s_service_account_name=None,
        secret_envvars={},
        privileged=False,
        namespace="default",
        batchapi=SimpleNamespace(create_namespaced_job=lambda space, body: taken.append(body)),
        _kubernetes_retry=lambda function: function(),
        report_job_submission=lambda info: None,
        logger=logging.getLogger(),
    )
    executor.run_job(job)
    return kubernetes.client.ApiClient().sanitize_for_serialization(taken[0].spec.template.spec)


def lsf(job):
    from snakemake_executor_plugin_lsf import Executor

    taken = []

    def bsub(call, **options):
        taken.append(call)
        return "Job <1> is submitted"

    executor = object.__new__(Executor)
    vars(executor).update(
        run_uuid="run",
        lsf_config={"LSF_MEMFMT": "perjob"},
        get_project_arg=lambda job: "",  # these two ask LSF
        get_queue_arg=lambda job: "",
        format_job_exec=lambda job: "true",
        workflow=SimpleNamespace(workdir_init="."),
        report_job_submission=lambda info: None,
        logger=logging.getLogger(),
    )
    subprocess.check_output, really = bsub, subprocess.check_output
    executor.run_job(job)
    subprocess.check_output = really
    return taken[0]


def sge(job):
    from snakemake_executor_plugin_sge import ExecutorSettings
    from snakemake_executor_plugin_sge.submit_string import get_submit_command

    return get_submit_command(job, {"log_dir": "logs"}, ExecutorSettings(), exec_cmd="true")


def generic(job):
    profile = yaml.safe_load(Path(sys.argv[1], "config.yaml").read_text())
    command = profile["cluster-generic-submit-cmd"]
    return job.format_wildcards(command, dependencies="")


PLUGINS = {"awsbatch": aws_batch} | {one.__name__: one for one in (googlebatch, kubernetes)}
PLUGINS |= {one.__name__: one for one in (lsf, sge, generic)}


def describe(self, job) -> None:
    if job.rule.name not in {*described, "all"}:  # the last is no job
        described[job.rule.name] = str(PLUGINS[name](job))
    run_job(self, job)


name = sys.argv[1].rsplit("/", 1)[-1]
run_job, dryrun.Executor.run_job = dryrun.Executor.run_job, describe
sys.stdout, out = sys.stderr, sys.stdout
try:
    cli.main(["--profile", *sys.argv[1:], "--executor", "local", "--cores", "8", "--dry-run"])
finally:
    print(json.dumps(described), file=out)
