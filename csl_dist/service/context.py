"""ServiceContext: what every route may use."""

from dataclasses import dataclass

from csl_dist.service.audits import AuditPool
from csl_dist.service.settings import ServiceSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceContext:
    """The settings of a service and the audits that it reads."""

    settings: ServiceSettings
    pool: AuditPool
