from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import workflow_engine
from workflow_engine import exceptions


def test_every_exception_can_be_imported_from_the_package() -> None:
    errors = {name for name, value in vars(exceptions).items() if isinstance(value, type)}
    own = {name for name in errors if getattr(exceptions, name).__module__ == exceptions.__name__}

    assert own - set(workflow_engine.__all__) == set()
    assert all(getattr(workflow_engine, name) is getattr(exceptions, name) for name in own)


def test_every_exported_name_exists_and_is_listed_by_dir() -> None:
    assert all(hasattr(workflow_engine, name) for name in workflow_engine.__all__)
    assert set(workflow_engine.__all__) <= set(dir(workflow_engine))


def test_the_vocabulary_can_be_imported_without_django_settings() -> None:
    code = "from workflow_engine import Await, Workflow, step; import sys; assert 'django.db' not in sys.modules"

    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})


def test_the_version_is_the_distributions() -> None:
    assert workflow_engine.__version__ == version("django-workflow-steps")
