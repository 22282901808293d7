"""The resource usage of each job's process, as last reported."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from sqlalchemy import BigInteger, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from engine.store import tables
from engine.store.repositories import to_row


class JobUsage(tables.Base):
    __tablename__ = "job_usage"

    job_id: Mapped[int] = mapped_column(ForeignKey("job.id", ondelete="CASCADE"), primary_key=True)
    cpu: Mapped[float] = mapped_column(default=0.0)
    memory: Mapped[int] = mapped_column(BigInteger, default=0)
    peak: Mapped[int] = mapped_column(BigInteger, default=0)
    gpu: Mapped[int] = mapped_column(BigInteger, default=0)
    gpu_total: Mapped[int] = mapped_column(BigInteger, default=0)
    measured: Mapped[datetime.datetime] = mapped_column(default=tables.now)


@dataclass(frozen=True)
class UsageRow:
    """CPU in percent of one core; memory, peak memory, GPU memory used and total GPU memory in bytes (0 without a GPU)."""

    job_id: int
    cpu: float
    memory: int
    peak: int
    gpu: int
    gpu_total: int
    measured: datetime.datetime


class Usages(tables.StorePart):
    """The resource usage of each job."""

    def note(self, job_id: int, *, cpu: float, memory: int, peak: int, gpu: int = 0, gpu_total: int = 0) -> None:
        """Store the latest figures of a job; ignored if the job no longer exists."""
        with self._store.write(together=True) as session:
            if session.get(tables.Job, job_id) is None:
                return
            record = session.get(JobUsage, job_id)
            if record is None:
                record = JobUsage(job_id=job_id)
                session.add(record)
            record.cpu, record.memory, record.peak = cpu, memory, max(peak, record.peak or 0)
            record.gpu, record.gpu_total, record.measured = gpu, gpu_total, tables.now()

    def get(self, job_id: int) -> UsageRow | None:
        """The last figures of a job; None before the first."""
        with self._store.read() as session:
            record = session.get(JobUsage, job_id)
            return None if record is None else to_row(UsageRow, record)
