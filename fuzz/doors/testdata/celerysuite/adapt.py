"""A plugin of pytest for Celery's own tests. It skips those that skip.txt names, with the reason above them."""
import os

import pytest


@pytest.fixture(scope="session", autouse=True)
def class_task(celery_session_app):
    """The session's worker registers this class as it is: one that no app is known to breaks its processes."""
    from t.integration.tasks import ClassBasedAutoRetryTask

    ClassBasedAutoRetryTask.bind(celery_session_app)


@pytest.fixture(scope="session")
def celery_worker_parameters():
    """Tests leave tasks behind that sleep for longer than the next one waits. Celery's own runs repeat that one."""
    return {"concurrency": 3}


@pytest.fixture(autouse=True)
def worker(ZZZZ_set_app_current, celery_session_worker):
    """Some tests need the worker and do not say so."""


def excluded():
    """The tests that do not apply, and why."""
    reason, reasons = "", {}
    with open(os.path.join(os.path.dirname(__file__), "skip.txt")) as file:
        for line in map(str.strip, file):
            if line.startswith("#"):
                reason = line[1:].strip()
            elif line:
                reasons[line] = reason
    return reasons


def pytest_collection_modifyitems(config, items):
    reasons = excluded()
    names = {item.nodeid.partition("integration/")[2]: item for item in items}
    for name in reasons.keys() & names.keys():
        names[name].add_marker(pytest.mark.skip(reason=reasons[name]))
    if (gone := reasons.keys() - names.keys()) and not any("::" in arg for arg in config.args):
        raise pytest.UsageError(f"skip.txt names tests that there are not: {', '.join(sorted(gone))}")
