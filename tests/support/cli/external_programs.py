"""Programs that a script calls and that are not on every machine, as small stand-ins that do the real thing.

`aws s3 sync DIR s3://BUCKET/PREFIX` puts files into a real S3 server, `curl` really posts, `jq -r .FIELD` reads JSON.
"""

import stat
import sys
from pathlib import Path

from tests.support.cli.forker import command_script

_AWS = """
import os, sys
from pathlib import Path
import boto3
verb, action, directory, url = sys.argv[1:5]
assert (verb, action) == ("s3", "sync")
bucket, _, prefix = url.removeprefix("s3://").partition("/")
s3 = boto3.client("s3", endpoint_url=os.environ["S3_ENDPOINT"], region_name="us-east-1")
for path in Path(directory).rglob("*"):
    if path.is_file():
        s3.upload_file(str(path), bucket, f"{prefix}/{path.relative_to(directory)}")
"""
_CURL = """
import sys, urllib.request
words = sys.argv[1:]
method, url = words[words.index("-X") + 1], next(w for w in words if w.startswith("http"))
name, _, value = words[words.index("-H") + 1].partition(": ")
data = words[words.index("-d") + 1].encode()
request = urllib.request.Request(url, data=data, method=method, headers={name: value})
print(urllib.request.urlopen(request, timeout=30).read().decode(), end="")
"""
_JQ = """
import json, sys
assert sys.argv[1] == "-r"
print(json.load(sys.stdin)[sys.argv[2].removeprefix(".")])
"""


def put_programs(directory: Path) -> None:
    """`zkbackup` itself, `aws`, `curl` and `jq`, for a PATH."""
    directory.mkdir()
    for name, code in (("aws", _AWS), ("curl", _CURL), ("jq", _JQ)):
        (directory / name).write_text(f"#!{sys.executable}\n{code}")
    (directory / "zkbackup").write_text(command_script("logkeep.cli.zkbackup"))
    for path in directory.iterdir():
        path.chmod(stat.S_IRWXU)
