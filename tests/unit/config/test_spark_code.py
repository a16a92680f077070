"""Which Spark settings a file that the user did not name may hold."""

from pathlib import Path

import pytest

from logkeep.config.load import load
from logkeep.config.options import SPARK_CONF
from logkeep.config.places import Places, standard_places
from logkeep.config.spark_code import may_name_code
from logkeep.errors import ConfigError


@pytest.mark.parametrize(
    ("key", "value"),
    (
        ("spark.driver.extraJavaOptions", "-javaagent:/x.jar"),
        ("spark.executor.defaultJavaOptions", "-javaagent:/x.jar"),
        ("spark.driver.extraClassPath", "/x"),
        ("spark.executor.extraLibraryPath", "/x"),
        ("spark.jars", "/x.jar"),
        ("spark.jars.packages", "a:b:1"),
        ("spark.jars.repositories", "https://x"),
        ("spark.jars.ivySettings", "x.xml"),
        ("spark.files", "/x"),
        ("spark.archives", "x.zip"),
        ("spark.submit.pyFiles", "x.py"),
        ("spark.plugins", "a.B"),
        ("spark.extraListeners", "a.B"),
        ("spark.sql.queryExecutionListeners", "a.B"),
        ("spark.sql.extensions", "a.B"),
        ("spark.sql.catalog.x", "a.B"),
        ("spark.python.daemon.module", "5"),
        ("spark.python.worker.module", "x"),
        ("spark.pyspark.python", "/x"),
        ("spark.pyspark.driver.python", "/x"),
        ("spark.executorEnv.PYTHONPATH", "/x"),
        ("spark.executorEnv.LD_PRELOAD", "1"),
        ("spark.yarn.appMasterEnv.X", "1"),
        ("spark.serializer", "a.B"),
        ("spark.kryo.registrator", "a.B"),
        ("spark.hadoop.fs.x.impl", "a.B"),
        ("spark.driver.resource.gpu.discoveryScript", "/x"),
        ("spark.kubernetes.container.image", "x"),
        ("spark.kubernetes.driver.podTemplateFile", "x"),
        ("spark.metrics.conf", "x"),
        ("spark.local.dir", "/x"),
        ("spark.a.setting.of.the.future", "a.B"),
    ),
)
def test_what_may_name_code(key: str, value: str) -> None:
    assert may_name_code(key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    (
        ("spark.executor.memory", "4g"),
        ("spark.executor.instances", "10"),
        ("spark.cores.max", "16"),
        ("spark.network.timeout", "120s"),
        ("spark.memory.fraction", "0.6"),
        ("spark.sql.adaptive.enabled", "true"),
        ("spark.driver.maxResultSize", "1 GB"),
        ("spark.app.name", "nightly backup"),
        ("spark.yarn.queue", "batch"),
    ),
)
def test_what_may_not(key: str, value: str) -> None:
    assert not may_name_code(key, value)


def test_only_the_file_in_the_working_directory_is_limited(tmp_path: Path) -> None:
    path = tmp_path / "logkeep.yaml"
    path.write_text("engine: {spark_conf: {spark.executor.memory: 4g, spark.plugins: a.B, spark.jars: x.jar}}\n")
    with pytest.raises(ConfigError, match=r"spark\.plugins, spark\.jars may name code") as caught:
        load({}, {}, standard_places({}, directory=tmp_path, system=tmp_path / "none"))
    assert (caught.value.subject, "--config" in caught.value.remedy) == (f"{path}:1", True)
    for places in (Places(path, ()), Places(None, (path,))):
        assert ("spark.plugins", "a.B") in load({}, {}, places).settings[SPARK_CONF]
    path.write_text("engine: {spark_conf: {spark.executor.memory: 4g}}\n")
    loaded = load({}, {}, standard_places({}, directory=tmp_path, system=tmp_path / "none"))
    assert loaded.settings[SPARK_CONF] == (("spark.executor.memory", "4g"),)
