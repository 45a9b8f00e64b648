"""The table in docs/cluster.md is the one that was measured."""

import json

from cluster.table import FAULTS, PAGE, page


def test_the_table_of_faults_is_made_from_its_record():
    assert page(PAGE.read_text(), json.loads(FAULTS.read_text())) == PAGE.read_text()
