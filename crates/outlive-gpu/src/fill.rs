//! A loan that a device fills.
#![allow(unsafe_code)]

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Duration;

use outlive::topic::segments::{self, Segment};
use outlive::{Loan, Payload};

use crate::aside::DROP_WAIT;
use crate::copier::{Job, Place, Started};
use crate::cuda::Cuda;
use crate::event::{COPY_WAIT, EVENTS_MAX, Event};
use crate::handle::{DevicePtr, Stream};
use crate::registrar::Flight;
use crate::{Error, ErrorKind, Result};

/// A copy that was begun; `None`: it is done already.
pub(crate) struct UnderWay(Option<Event>);

impl UnderWay {
    pub(crate) fn into_event(self) -> Option<Event> {
        self.0
    }

    pub(crate) fn wait(&self, timeout: Duration) -> Result<()> {
        self.0.as_ref().map_or(Ok(()), |event| event.wait(timeout))
    }
}

impl Cuda {
    /// Begins a copy.
    ///
    /// # Safety
    /// As [`crate::copier::Copier::start`]; the stream lives and is one of this device.
    ///
    /// # Errors
    /// The copier's own. Nothing is under way then, but with `Timeout`.
    pub(crate) unsafe fn start(&self, job: &Job, stream: Stream) -> Result<UnderWay> {
        // SAFETY: passed on from the caller.
        unsafe { self.start_all(std::slice::from_ref(job), stream) }
    }

    /// As `start`, for several.
    unsafe fn start_all(&self, jobs: &[Job], stream: Stream) -> Result<UnderWay> {
        let _context = self.inner.enter()?;
        self.inner.check_stream(stream)?;
        // Before anything is begun of which nobody would know when it ends.
        let prepared = self.inner.events.prepare()?;
        let mut on_stream = false;
        let mut begun = Ok(());
        for job in jobs {
            let copier = self.copiers().choose(job).cloned();
            // SAFETY: passed on from the caller.
            match copier.and_then(|copier| unsafe { copier.start(job, stream) }) {
                Ok(started) => on_stream |= started == Started::OnStream,
                Err(e) => {
                    begun = Err(e);
                    break;
                }
            }
        }
        if !on_stream {
            return begun.map(|()| UnderWay(None));
        }
        let event = prepared.begin(stream).map_err(in_doubt)?;
        if let Err(e) = begun {
            // What was begun before it is under way.
            event.wait(COPY_WAIT).map_err(in_doubt)?;
            return Err(e);
        }
        Ok(UnderWay(Some(event)))
    }

    /// Begins a copy in or out of the chunk at `host`; `to_host`: in.
    ///
    /// # Safety
    /// As `start`. `host` is a loan or a sample that the caller keeps until the copy is done.
    pub(crate) unsafe fn start_chunk(
        &self,
        job: &Job,
        stream: Stream,
    ) -> Result<Option<Arc<Flight>>> {
        job.check()?;
        let ((Place::Host { ptr, .. }, _) | (_, Place::Host { ptr, .. })) = (job.to, job.from)
        else {
            return Err(Error::new(ErrorKind::InvalidArgument, "copying a chunk", ""));
        };
        let segment = segments::segment_at(ptr.addr());
        if let Some(segment) = &segment {
            let _context = self.inner.enter()?;
            self.inner.registrar.ensure(segment);
        }
        let jobs = self.cut(job, ptr.addr(), segment.as_ref());
        if jobs.len() > EVENTS_MAX {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("copying {} bytes in {} pieces", job.bytes(), jobs.len()),
                "raise OUTLIVE_GPU_PIECE_BYTES: a stream that stands still takes about 1000",
            ));
        }
        // SAFETY: passed on from the caller; the parts of a job lie inside it.
        let under_way = unsafe { self.start_all(&jobs, stream) }?;
        let serial = segment.map(|s| s.serial());
        Ok(under_way.0.map(|event| self.inner.registrar.fly(serial, event)))
    }

    /// The job in parts that do not cross the border of two registrations.
    fn cut(&self, job: &Job, host: usize, segment: Option<&Segment>) -> Vec<Job> {
        let Some(segment) = segment else { return vec![*job] };
        let is_in = matches!(job.to, Place::Host { .. });
        let pitch = if is_in { job.to.pitch(job.width) } else { job.from.pitch(job.width) };
        let span = pitch * job.rows.saturating_sub(1) + job.width;
        let whole = self.inner.registrar.cuts(segment, host, span);
        if whole.len() <= 1 || job.bytes() == 0 {
            return vec![*job];
        }
        let (to_pitch, from_pitch) = (job.to.pitch(job.width), job.from.pitch(job.width));
        let flat = to_pitch == job.width && from_pitch == job.width;
        let (width, rows) = if flat { (job.bytes(), 1) } else { (job.width, job.rows) };
        let (mut parts, mut row) = (Vec::new(), 0);
        while row < rows {
            let (at, left) = (host + row * pitch, pitch * (rows - row - 1) + width);
            let to_border = self.inner.registrar.cuts(segment, at, left)[0];
            if to_border >= width {
                let count = ((to_border - width) / pitch + 1).min(rows - row);
                let (to, from) = (job.to.skip(row * to_pitch), job.from.skip(row * from_pitch));
                parts.push(Job { to, from, width, rows: count });
                row += count;
                continue;
            }
            let mut at_byte = 0;
            for bytes in self.inner.registrar.cuts(segment, at, width) {
                let to = job.to.at(row * to_pitch + at_byte);
                let from = job.from.at(row * from_pitch + at_byte);
                parts.push(Job::flat(to, from, bytes));
                at_byte += bytes;
            }
            row += 1;
        }
        parts
    }
}

/// An error after which a copy may still be under way.
fn in_doubt(e: Error) -> Error {
    Error::new(ErrorKind::Timeout, format!("a copy failed half-way ({e})"), e.remedy())
}

/// Loans that a device fills.
pub trait LoanExt<'p, T: Payload + ?Sized>: Sized {
    /// Begins to copy from `from` on the device into the slot, in the order of `stream`; as many
    /// bytes as the slot has.
    ///
    /// [`Fill::publish`] commits once the device is done: whoever dies before, nobody sees the
    /// message.
    ///
    /// # Safety
    /// `from` is device memory of that length, valid until the copy is done. `stream` is one of
    /// this device and lives until then.
    ///
    /// # Errors
    /// `Driver`. The slot is free again, unless the device may still write there; then it stays
    /// reserved ([`crate::Registered::quarantined`]).
    ///
    /// # Crash safety
    /// **Strict.** Dying here, nothing was sent. What the device writes after our death goes into
    /// a file of ours that nobody reuses.
    ///
    /// # Real-time
    /// Some us; the first copy into a data segment registers it, some 100 us per MiB.
    unsafe fn fill_from_device(
        self,
        cuda: &Cuda,
        from: DevicePtr,
        stream: Stream,
    ) -> Result<Fill<'p, T>>;

    /// As `fill_from_device` for an image: `rows` rows of `width` bytes, `from_pitch` bytes apart
    /// on the device, `to_pitch` in the slot, behind `offset` bytes that are left as they are.
    ///
    /// # Safety
    /// As `fill_from_device`, for the rows.
    ///
    /// # Errors
    /// As `fill_from_device`; `InvalidArgument` when the rows are not inside the slot.
    unsafe fn fill_rows_from_device(
        self,
        cuda: &Cuda,
        from: DevicePtr,
        rows: Rows,
        stream: Stream,
    ) -> Result<Fill<'p, T>>;
}

/// Rows of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Where the first row begins in the slot or sample, bytes.
    pub offset: usize,
    /// Bytes of a row.
    pub width: usize,
    /// How many.
    pub count: usize,
    /// From row to row in the slot or sample, bytes; 0: close together.
    pub host_pitch: usize,
    /// From row to row on the device, bytes; 0: close together.
    pub device_pitch: usize,
}

impl Rows {
    /// The host's and the device's place, if the rows lie inside `bytes` bytes at `host`.
    pub(crate) fn places(
        &self,
        host: *mut u8,
        bytes: usize,
        device: DevicePtr,
    ) -> Result<(Place, Place)> {
        let pitch = if self.host_pitch == 0 { self.width } else { self.host_pitch };
        let last = pitch.checked_mul(self.count.saturating_sub(1));
        let end = last.and_then(|b| b.checked_add(self.width)?.checked_add(self.offset));
        if end.is_none_or(|end| end > bytes) {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("copying {self:?} in or out of {bytes} bytes"),
                "the rows must lie inside the slot or sample",
            ));
        }
        let host = Place::Host { ptr: host.wrapping_add(self.offset), pitch: self.host_pitch };
        Ok((host, Place::Device { ptr: device, pitch: self.device_pitch }))
    }
}

impl<'p, T: Payload + ?Sized> LoanExt<'p, T> for Loan<'p, T> {
    unsafe fn fill_from_device(
        mut self,
        cuda: &Cuda,
        from: DevicePtr,
        stream: Stream,
    ) -> Result<Fill<'p, T>> {
        let slot = self.as_bytes_mut();
        let job = Job::flat(Place::host(slot.as_mut_ptr()), Place::device(from), slot.len());
        // SAFETY: the loan is kept until the copy is done; the rest is the caller's word.
        unsafe { fill(self, cuda, &job, stream) }
    }

    unsafe fn fill_rows_from_device(
        mut self,
        cuda: &Cuda,
        from: DevicePtr,
        rows: Rows,
        stream: Stream,
    ) -> Result<Fill<'p, T>> {
        let slot = self.as_bytes_mut();
        let (to, from) = rows.places(slot.as_mut_ptr(), slot.len(), from)?;
        let job = Job { to, from, width: rows.width, rows: rows.count };
        // SAFETY: `places` checked that the rows lie in the loan, which is kept.
        unsafe { fill(self, cuda, &job, stream) }
    }
}

unsafe fn fill<'p, T: Payload + ?Sized>(
    loan: Loan<'p, T>,
    cuda: &Cuda,
    job: &Job,
    stream: Stream,
) -> Result<Fill<'p, T>> {
    let loan = ManuallyDrop::new(loan);
    // SAFETY: passed on from the callers.
    match unsafe { cuda.start_chunk(job, stream) } {
        Ok(flight) => Ok(Fill { loan, flight, cuda: cuda.clone() }),
        Err(e) => {
            if e.kind() == ErrorKind::Timeout {
                cuda.inner.registrar.quarantine();
            } else {
                drop(ManuallyDrop::into_inner(loan));
            }
            Err(e)
        }
    }
}

/// A slot that the device is filling. Published when the device is done, not before.
///
/// Dropped unpublished it waits for the device, at most a second: the slot is free again then. If
/// the device is still not done, the slot stays reserved for as long as the process lives.
#[must_use = "it is published by `publish`"]
pub struct Fill<'p, T: Payload + ?Sized> {
    loan: ManuallyDrop<Loan<'p, T>>,
    flight: Option<Arc<Flight>>,
    cuda: Cuda,
}

impl<T: Payload + ?Sized> std::fmt::Debug for Fill<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fill").field("flight", &self.flight).finish()
    }
}

impl<'p, T: Payload + ?Sized> Fill<'p, T> {
    /// Whether the device is done.
    ///
    /// # Errors
    /// `Driver`: the copy failed.
    pub fn is_done(&self) -> Result<bool> {
        self.flight.as_ref().map_or(Ok(true), |flight| flight.event.is_done())
    }

    /// Waits until the device is done, at most `timeout`.
    ///
    /// # Errors
    /// `Timeout`: it is still under way. `Driver`: the copy failed.
    pub fn wait(&self, timeout: Duration) -> Result<()> {
        self.flight.as_ref().map_or(Ok(()), |flight| flight.event.wait(timeout))
    }

    /// Waits until the device is done, at most 10 s, then makes the slot visible to subscribers;
    /// returns its `seq`.
    ///
    /// # Errors
    /// `Timeout` and `Driver`: nothing was sent, and the slot stays reserved if the device may
    /// still write there. Those of [`Loan::publish`].
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of the entry's `seq`, after the device is done.
    pub fn publish(self) -> Result<u64> {
        Ok(self.finish()?.publish()?)
    }

    /// Waits until the device is done, at most 10 s, and gives the loan back: to look at it or to
    /// write more into it.
    ///
    /// # Errors
    /// As [`Fill::publish`].
    pub fn finish(self) -> Result<Loan<'p, T>> {
        self.wait(COPY_WAIT)?;
        let mut this = ManuallyDrop::new(self);
        this.forget_flight();
        // SAFETY: `this` is never dropped; each of its fields is taken out or dropped once.
        unsafe {
            let loan = ManuallyDrop::take(&mut this.loan);
            std::ptr::drop_in_place(&raw mut this.flight);
            std::ptr::drop_in_place(&raw mut this.cuda);
            Ok(loan)
        }
    }

    fn forget_flight(&self) {
        if let Some(flight) = &self.flight {
            self.cuda.inner.registrar.land(flight);
        }
    }
}

impl<T: Payload + ?Sized> Drop for Fill<'_, T> {
    fn drop(&mut self) {
        if self.wait(DROP_WAIT).is_ok() {
            self.forget_flight();
            // SAFETY: dropped here once; nothing uses it after.
            unsafe { ManuallyDrop::drop(&mut self.loan) };
        } else {
            self.cuda.inner.registrar.quarantine();
        }
    }
}
