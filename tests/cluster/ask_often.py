"""Snakemake, which here asks every second how its jobs are: the plugin waits up to 180 s."""

import asyncio
import sys

from snakemake.cli import main
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor


async def sleep(self):
    await asyncio.sleep(1)


RemoteExecutor.sleep = sleep
main(sys.argv[1:])
