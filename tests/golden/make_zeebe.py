"""Write tests/golden/zeebe anew: backups that a real Zeebe stored in a bucket, as it stored them.

Backup 10 has no snapshots, backup 20 has one for each partition and was taken under load. `make zeebe` downloads what
this needs: `LOGKEEP_ZEEBE_HOME=$PWD/.cache/zeebe .venv/bin/python -m tests.golden.make_zeebe`.
"""

import io
import os
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.support.servers.s3 import S3Server, seaweed
from tests.support.servers.zeebe import HOME, Zeebe
from tests.support.zeebe.management import Management

GOLDEN = Path(__file__).parent / "zeebe" / "store-8.6.0.tar.xz"
BUCKET = "backups"


def main() -> None:
    sys.path.append(str(Path(os.environ[HOME]) / "python"))
    from tests.support.zeebe.workflows import Workflows  # noqa: PLC0415  # needs what `make zeebe` installs

    with tempfile.TemporaryDirectory() as name, seaweed(Path(name)) as server:
        server.make_bucket(BUCKET)
        with Zeebe(Path(name) / "zeebe", server.endpoint, BUCKET) as broker, Workflows(broker.gateway) as work:
            management = Management(broker.management_url)
            work.deploy()
            for number in range(12):
                work.order(f"early-{number}")
            management.back_up(10)
            for number in range(6):
                work.start("direct", f"direct-{number}")
            management.take_snapshots()
            with work.load("load"):
                management.back_up(20)
        _pack(server)


def _pack(server: S3Server) -> None:
    client = server.client()
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    with tarfile.open(GOLDEN, "w:xz") as archive:
        for name in sorted(found["Key"] for page in pages for found in page.get("Contents", [])):
            data = client.get_object(Bucket=BUCKET, Key=name)["Body"].read()
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


if __name__ == "__main__":
    main()
