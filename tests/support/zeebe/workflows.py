"""Work for a real Zeebe through its gRPC gateway: processes, instances, messages, jobs.

Two processes: `direct` offers a job at once, `order` waits for the message `paid` first. The message is published on
the partition of its key, the instance runs on another one: that makes commands between partitions.
"""

import importlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

_TIMEOUT_S = 30.0
_TTL_MS = 3_600_000
_JOB_MS = 3_600_000

_PROCESS = """<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL"
 xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="d" targetNamespace="logkeep">
{message}
<bpmn:process id="{name}" isExecutable="true">
<bpmn:startEvent id="start"><bpmn:outgoing>a</bpmn:outgoing></bpmn:startEvent>
{steps}
<bpmn:serviceTask id="work"><bpmn:extensionElements><zeebe:taskDefinition type="{name}"/></bpmn:extensionElements>
<bpmn:incoming>{last}</bpmn:incoming><bpmn:outgoing>z</bpmn:outgoing></bpmn:serviceTask>
<bpmn:endEvent id="end"><bpmn:incoming>z</bpmn:incoming></bpmn:endEvent>
<bpmn:sequenceFlow id="a" sourceRef="start" targetRef="{first}"/>
<bpmn:sequenceFlow id="z" sourceRef="work" targetRef="end"/>
</bpmn:process></bpmn:definitions>"""

_MESSAGE = """<bpmn:message id="paid" name="paid"><bpmn:extensionElements>
<zeebe:subscription correlationKey="=key"/></bpmn:extensionElements></bpmn:message>"""

_WAIT = """<bpmn:intermediateCatchEvent id="wait"><bpmn:incoming>a</bpmn:incoming><bpmn:outgoing>b</bpmn:outgoing>
<bpmn:messageEventDefinition messageRef="paid"/></bpmn:intermediateCatchEvent>
<bpmn:sequenceFlow id="b" sourceRef="wait" targetRef="work"/>"""


class Workflows:
    """A client of one gateway. `accepted` has the keys of orders that were created and paid, in order."""

    def __init__(self, gateway: str) -> None:
        self._pb: Any = importlib.import_module("pyzeebe.proto.gateway_pb2")
        stubs: Any = importlib.import_module("pyzeebe.proto.gateway_pb2_grpc")
        grpc: Any = importlib.import_module("grpc")  # installed by `make zeebe` alone
        self._channel = grpc.insecure_channel(gateway)
        self._stub = stubs.GatewayStub(self._channel)
        self.begun: list[str] = []
        self.accepted: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._channel.close()

    def deploy(self) -> None:
        """Both processes; partition 1 distributes them to the others."""
        for name, source in (("direct", _direct()), ("order", _order())):
            resource = self._pb.Resource(name=f"{name}.bpmn", content=source.encode())
            self._stub.DeployResource(self._pb.DeployResourceRequest(resources=[resource]), timeout=_TIMEOUT_S)

    def start(self, process: str, key: str) -> int:
        """Create an instance; returns its key, whose upper bits are its partition."""
        request = self._pb.CreateProcessInstanceRequest(
            bpmnProcessId=process, version=-1, variables=json.dumps({"key": key})
        )
        return int(self._stub.CreateProcessInstance(request, timeout=_TIMEOUT_S).processInstanceKey)

    def pay(self, key: str) -> None:
        request = self._pb.PublishMessageRequest(name="paid", correlationKey=key, timeToLive=_TTL_MS)
        self._stub.PublishMessage(request, timeout=_TIMEOUT_S)

    def jobs(self, process: str, *, at_most: int = 1000) -> dict[str, int]:
        """The jobs that are offered now, as keys of their orders with their job keys; each is offered once an hour."""
        request = self._pb.ActivateJobsRequest(
            type=process, worker="tests", timeout=_JOB_MS, maxJobsToActivate=at_most, requestTimeout=-1
        )
        answers = self._stub.ActivateJobs(request, timeout=_TIMEOUT_S)
        return {json.loads(job.variables)["key"]: int(job.key) for answer in answers for job in answer.jobs}

    def finish(self, job: int) -> None:
        self._stub.CompleteJob(self._pb.CompleteJobRequest(jobKey=job), timeout=_TIMEOUT_S)

    def order(self, key: str) -> None:
        """One order, created and paid."""
        self.begun.append(key)
        self.start("order", key)
        self.pay(key)
        self.accepted.append(key)

    @contextmanager
    def load(self, name: str) -> Iterator[threading.Event]:
        """Orders one after another, in a thread, until the block ends or the event is set."""
        stop, failure = threading.Event(), list[BaseException]()

        def work() -> None:
            try:
                number = 0
                while not stop.is_set():
                    self.order(f"{name}-{number}")
                    number += 1
            except BaseException as error:  # noqa: BLE001  # raised in the thread that joins
                failure.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield stop
        finally:
            stop.set()
            thread.join()
        if failure:
            raise failure[0]


def _direct() -> str:
    return _PROCESS.format(name="direct", message="", steps="", first="work", last="a")


def _order() -> str:
    return _PROCESS.format(name="order", message=_MESSAGE, steps=_WAIT, first="wait", last="b")
