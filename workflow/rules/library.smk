# The library veff stands beside the rules in a clone. Rules that come from a git URL need it
# installed, for themselves and for their jobs, in their own version.
import os
import re
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.sourcecache import LocalGitFile

# Of rules from git+file://, Snakemake 9.27 finds no script: it joins what is not text.
_join = LocalGitFile.join
LocalGitFile.join = lambda self, path: _join(self, str(path))


def home(source):
    """What pip installs the library of these rules from; '' for rules in a clone."""
    if isinstance(source, LocalGitFile):
        return f"git+file://{os.path.abspath(source.repo_path)}@{source.ref}"
    if hasattr(source, "repo"):  # github(…), gitlab(…)
        return f"git+https://{source.host}/{source.repo}@{source.ref}"
    return ""


VERSION = re.search(
    '__version__ = "(.*)"',
    Path(workflow.source_path("../veff/__init__.py")).read_text(),
)[1]
HOME = home(workflow.current_basedir)
# Read by envs/*.post-deploy.sh and by veff.job.
os.environ.update(VEFF_HOME=HOME, VEFF_VERSION=VERSION)

try:
    from veff import __version__ as installed
except ImportError:
    installed = None
if installed != VERSION:
    raise WorkflowError(
        f"these rules are cherimoya-veff {VERSION}, and the Python package that they need is "
        + (f"there as {installed}" if installed else "not installed")
        + f": pip install --no-deps {HOME or 'the clone of these rules'}"
    )
