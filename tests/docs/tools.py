"""Apache's own command line tools for the pages, from the jars of the embedded servers.

`python -m tests.docs.tools NAME ARGUMENTS` does what the script of that name does.
"""

import sys
from pathlib import Path

APACHE_TOOLS = {
    "kafka-dump-log.sh": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-consumer-groups.sh": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "zkCli.sh": "org.apache.zookeeper.ZooKeeperMain",
}


def run(name: str, arguments: list[str]) -> None:
    from tests.docs.broker import GuideKafka  # noqa: PLC0415 - the shell needs only the names

    if name.startswith("zk"):
        from tests.docs.zookeeper import guide_server  # noqa: PLC0415 - as above

        server = guide_server()
        server.directory.mkdir(parents=True, exist_ok=True)  # a page with an ensemble alone has no server of this name
        print(server.java_tool(APACHE_TOOLS[name], arguments), end="")
        return
    absolute = [str(Path(each).absolute()) if Path(each).is_file() else each for each in arguments]
    print(GuideKafka(Path("../kafka").absolute()).java_tool(APACHE_TOOLS[name], absolute), end="")


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2:])
