"""Starts a broker, prints its process id and waits: for a test that kills this process."""

import signal
import sys
from pathlib import Path

from logkeep.embedded.kafka import EmbeddedKafka

if __name__ == "__main__":
    with EmbeddedKafka(Path(sys.argv[1]), Path(sys.argv[2])) as kafka:
        print(kafka.pid, flush=True)
        signal.pause()
