"""Backups that a real Zeebe stored, imported into a repository and exported again. Every store call may be the last."""

import hashlib
import json
import shutil
import tarfile
from datetime import timedelta
from pathlib import Path

import pytest

from logkeep.checkpoint.zeebe.inventory import find_backup
from logkeep.checkpoint.zeebe.repo.exporting import StoreLayout, ZeebeExport
from logkeep.checkpoint.zeebe.repo.importing import ZeebeImport, ZeebeImported, ZeebeImportOptions, record_of
from logkeep.checkpoint.zeebe.verify import verify_backup
from logkeep.engine.inline import InlineEngine
from logkeep.errors import IllegalTransition, SourceDamaged, TargetUnsafe
from logkeep.model.findings import Severity
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import init_repository
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.store.base import Store
from logkeep.store.delegating import DelegatingStore
from logkeep.store.local import LocalStore
from logkeep.store.memory import MemoryStore

GOLDEN = Path(__file__).parents[2] / "golden" / "zeebe" / "store-8.6.0.tar.xz"


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("golden")
    with tarfile.open(GOLDEN) as archive:
        archive.extractall(root, filter="data")
    return root
