"""The files of packaging/fluent-bit/ fit each other and the options of `ForwardHandler`."""

import re
from pathlib import Path, PurePosixPath

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = ROOT / "packaging" / "fluent-bit"
PAGE = (ROOT / "docs" / "how-to" / "send-to-fluent-bit.md").read_text()
FLUENT_BIT_TEXT = (SHIPPED / "fluent-bit.yaml").read_text()
FLUENT_BIT = yaml.safe_load(FLUENT_BIT_TEXT)
(INPUT,) = FLUENT_BIT["pipeline"]["inputs"]

OBJECTS = list(yaml.safe_load_all((SHIPPED / "sidecar.yaml").read_text()))
NAMED = {(each["kind"], each["metadata"]["name"]): each for each in OBJECTS}
POD = NAMED["Deployment", "shop"]["spec"]["template"]["spec"]
(SIDECAR,) = POD["initContainers"]
(SHOP,) = POD["containers"]
VOLUMES = {volume["name"]: volume for volume in POD["volumes"]}


def variables(container):
    """Return the environment variables of a container: texts, and references to secrets."""
    return {each["name"]: each.get("value") or each["valueFrom"]["secretKeyRef"] for each in container["env"]}


def volume_of(container, path):
    """Return the volume that is mounted at a path, or at a folder above it."""
    path = PurePosixPath(path)
    mounts = {PurePosixPath(mount["mountPath"]): mount["name"] for mount in container["volumeMounts"]}
    (found,) = [name for at, name in mounts.items() if at == path or at in path.parents]
    return VOLUMES[found]


def ports(container):
    """Return the ports of a container by name."""
    return {each["name"]: each["containerPort"] for each in container["ports"]}


def test_every_mount_has_a_volume_and_every_volume_an_object():
    for container in (SIDECAR, SHOP):
        paths = [mount["mountPath"] for mount in container["volumeMounts"]]
        assert len(paths) == len(set(paths))
        assert {mount["name"] for mount in container["volumeMounts"]} <= VOLUMES.keys()
    used = {mount["name"] for container in (SIDECAR, SHOP) for mount in container["volumeMounts"]}
    assert used == VOLUMES.keys()
    for volume in VOLUMES.values():
        if "secret" in volume:
            secret = NAMED["Secret", volume["secret"]["secretName"]]
            assert {item["key"] for item in volume["secret"].get("items", [])} <= secret["stringData"].keys()
        if "persistentVolumeClaim" in volume:
            assert ("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]) in NAMED
    spec = NAMED["Deployment", "shop"]["spec"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]


def test_the_program_uses_the_port_and_the_key_of_fluent_bit():
    shop, sidecar = variables(SHOP), variables(SIDECAR)
    host, port = re.fullmatch(r"tls://(\w+):(\d+)", shop["FORWARD_ADDRESS"]).groups()

    # YAML 1.1 reads `on` as true.
    assert INPUT["name"] == "forward" and INPUT["tls"] is True
    assert int(port) == INPUT["port"] == ports(SIDECAR)["forward"]
    assert (host, INPUT["listen"]) == ("localhost", "127.0.0.1")
    assert f"DNS:{host}" in PAGE
    assert INPUT["shared_key"] == "${FORWARD_SHARED_KEY}"
    assert shop["FORWARD_SHARED_KEY"] == sidecar["FORWARD_SHARED_KEY"]
    for reference in (each for each in shop.values() if isinstance(each, dict)):
        assert reference["key"] in NAMED["Secret", reference["name"]]["stringData"]


def test_every_variable_of_the_configuration_is_set():
    named = set(re.findall(r"\$\{(\w+)\}", FLUENT_BIT_TEXT))
    assert named == variables(SIDECAR).keys()


def test_every_mounted_file_exists():
    secret = NAMED["Secret", "shop-forward-tls"]["stringData"]
    for name in ("tls.crt_file", "tls.key_file"):
        assert volume_of(SIDECAR, INPUT[name])["secret"]["secretName"] == "shop-forward-tls"
        assert PurePosixPath(INPUT[name]).name in secret
    authorities = variables(SHOP)["FORWARD_AUTHORITIES"]
    (item,) = volume_of(SHOP, authorities)["secret"]["items"]
    # The program has no file with Fluent Bit's key.
    assert item == {"key": "ca.crt", "path": PurePosixPath(authorities).name}
    (argument,) = SIDECAR["args"]
    config = argument.removeprefix("--config=")
    assert volume_of(SIDECAR, config)["configMap"]["name"] == "shop-fluent-bit"
    assert PurePosixPath(config).name == "fluent-bit.yaml"
    assert "persistentVolumeClaim" in volume_of(SIDECAR, FLUENT_BIT["service"]["storage.path"])


def test_the_queue_is_in_memory_and_the_spool_on_a_volume_of_its_own_folder():
    shop = variables(SHOP)

    assert volume_of(SHOP, shop["LOGSPOOL_QUEUE_DIR"])["emptyDir"]["medium"] == "Memory"
    assert "persistentVolumeClaim" in volume_of(SHOP, shop["LOGSPOOL_SPOOL_DIR"])
    folders = [
        mount["subPath"] for each in (SIDECAR, SHOP) for mount in each["volumeMounts"] if mount["name"] == "spool"
    ]
    assert len(folders) == len(set(folders)) == 2


def test_probes_use_ports_that_the_containers_have():
    for container in (SIDECAR, SHOP):
        probes = [probe["httpGet"] for name, probe in container.items() if name.endswith("Probe")]
        assert len(probes) >= 2
        assert {probe["port"] for probe in probes} <= ports(container).keys()
    assert ports(SIDECAR)["http"] == FLUENT_BIT["service"]["http_port"]
    assert FLUENT_BIT["service"]["health_check"] is True
    assert FLUENT_BIT["service"]["grace"] < POD["terminationGracePeriodSeconds"]
    # With this policy Kubernetes ends the sidecar after the program.
    assert SIDECAR["restartPolicy"] == "Always"


def test_the_page_has_the_names_of_the_files():
    for name in ("FORWARD_ADDRESS", "FORWARD_AUTHORITIES", "FORWARD_SHARED_KEY", "shop-forward-tls", "shop-fluent-bit"):
        assert name in PAGE, name
