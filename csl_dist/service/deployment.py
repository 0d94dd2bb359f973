"""The service on Ray Serve: replicas that listen on one port themselves.

Serve starts the replicas, checks their health and replaces those that died. Requests do not go
through its proxy, which takes several times as long as a query: every replica has its own server on
the same port, and the kernel spreads connections over them. See docs/decisions/013-service.md.
"""

import logging
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import ray
import uvicorn
from ray import serve

from csl_dist.cluster.leftovers import own_folder
from csl_dist.errors import ConfigError, JobError
from csl_dist.service.app import create_app
from csl_dist.service.connections import IDLE_SECONDS, MAX_CONNECTIONS, Connection
from csl_dist.service.metrics import FOLDER_VARIABLE
from csl_dist.service.settings import ServiceSettings

BACKLOG = 2048


class Server:
    """A uvicorn server in its own thread."""

    def __init__(self, settings: ServiceSettings):
        config = uvicorn.Config(
            create_app(settings),
            access_log=False,
            log_level="warning",
            limit_concurrency=MAX_CONNECTIONS,
            timeout_keep_alive=int(IDLE_SECONDS),
            http=Connection,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            ws="none",
        )
        self._server = uvicorn.Server(config)
        self._socket = listening_socket(settings.host, settings.port)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )
        self._thread.start()

    def check_alive(self) -> None:
        """Raises if the server has ended."""
        if not self._thread.is_alive():
            raise RuntimeError("the HTTP server of this replica has ended")

    def stop(self) -> None:
        """Stops after the requests in progress."""
        self._server.should_exit = True
        self._thread.join(timeout=10)


class Replica:
    """One process that answers requests."""

    def __init__(self, settings: ServiceSettings):
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
        self._server = Server(settings)

    def check_health(self) -> None:
        """Called by Serve regularly; a replica that fails is replaced."""
        self._server.check_alive()

    def __del__(self) -> None:
        self._server.stop()


def listening_socket(host: str, port: int, *, shared: bool = True) -> socket.socket:
    """A socket at an address; if it is shared, other replicas can listen there too."""
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listening.bind(address)
    listening.listen(BACKLOG)
    return listening


@contextmanager
def running_service(
    settings: ServiceSettings, *, replicas: int = 1, verbose: bool = False
) -> Iterator[None]:
    """Runs the service on this machine until the end of the block.

    All replicas run on the node where this is called, as they share one of its ports.
    """
    _check_port_is_free(settings)
    name = f"csl-{settings.port}"
    with tempfile.TemporaryDirectory(prefix=own_folder("metrics")) as folder:
        deployment = serve.deployment(Replica).options(
            name="service",
            num_replicas=replicas,
            max_ongoing_requests=MAX_CONNECTIONS,
            health_check_period_s=5,
            ray_actor_options={
                # A query is short; a replica needs its own process, not a whole core.
                "num_cpus": 0,
                "resources": {f"node:{ray.util.get_node_ip_address()}": 0.001},
                "runtime_env": {"env_vars": {FOLDER_VARIABLE: folder}},
            },
        )
        if not verbose:
            logging.getLogger("ray.serve").setLevel(logging.ERROR)
        serve.start(proxy_location="Disabled", logging_config=_logging(verbose))
        try:
            serve.run(
                deployment.bind(settings),
                name=name,
                route_prefix=None,
                logging_config=_logging(verbose),
            )
        except RuntimeError as error:
            serve.delete(name)
            raise JobError(f"the service can't start: {_last_line(str(error))}") from error
        try:
            yield
        finally:
            serve.delete(name)


def _check_port_is_free(settings: ServiceSettings) -> None:
    """Refuses a port that is in use: only the replicas of one service may share it."""
    try:
        listening_socket(settings.host, settings.port, shared=False).close()
    except OSError as error:
        raise ConfigError(
            f"can't listen on {settings.address}: {error.strerror or error}; choose another --port "
            "or --host"
        ) from error


def _logging(verbose: bool) -> dict[str, str | bool]:
    return {"log_level": "INFO" if verbose else "ERROR", "enable_access_log": verbose}


def _last_line(text: str) -> str:
    return text.strip().splitlines()[-1] if text.strip() else "no reason given"
