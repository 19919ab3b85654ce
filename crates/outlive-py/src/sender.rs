//! A publisher as itself and its loans use it: by one thread at a time, kept for what is lent.

use std::mem::transmute;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError, Weak};
use std::time::Duration;

use outlive::topic::Unpublished;
use outlive::{Deadline, ErrorKind, Loan as CoreLoan, Publisher as CorePublisher};
use pyo3::prelude::*;

use crate::error::OrRaise;
use crate::port::{Held, Inner, Port};
use crate::process::{self, Close};

/// A publisher of the core, and what of it is lent.
pub(crate) struct Sender {
    /// In a box: loans refer to it.
    pub(crate) publisher: Box<CorePublisher<[u8]>>,
    /// Loans that are neither published nor given back: they refer to the publisher.
    loans: usize,
    /// Those that keep its memory: loans, and arrays over what was one.
    users: usize,
    given_back: Arc<GivenBack>,
}

// SAFETY: the publisher and its loans are used behind the mutex of its port only.
unsafe impl Send for Sender {}

impl Inner for Sender {
    fn closed(&mut self) -> bool {
        self.take_back();
        // At the end of the interpreter all memory stays mapped, see `process::_close_all`.
        if process::is_ending() { self.loans > 0 } else { self.users > 0 }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if !self.take_back() {
            // The lock was forked while a thread of the parent held it: what it has stays.
            std::mem::forget(Arc::clone(&self.given_back));
        }
    }
}

impl Sender {
    /// A loan and where its memory is, as a number.
    fn lend(&mut self, size: usize) -> outlive::Result<(Lent, usize)> {
        self.take_back();
        let mut loan = self.publisher.loan_slice(size)?;
        let data = loan.as_mut_ptr().expose_provenance();
        self.users += 1;
        self.loans += 1;
        // SAFETY: it refers to the publisher in its box, which stays while loans are counted.
        Ok((unsafe { transmute::<CoreLoan<'_, [u8]>, Lent>(loan) }, data))
    }

    /// Ends what was let go of. `false`: another thread gives something back right now.
    fn take_back(&mut self) -> bool {
        self.users -= self.given_back.users.swap(0, Ordering::Acquire);
        let mut loans = match self.given_back.loans.try_lock() {
            Ok(loans) => loans,
            Err(TryLockError::Poisoned(e)) => e.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        self.loans -= loans.len();
        loans.clear();
        true
    }

    /// Publishes what a loan has; hands it back if a reliable subscriber is behind.
    fn publish(&mut self, loan: &mut Option<Lent>) -> outlive::Result<u64> {
        let Some(lent) = loan.take() else { unreachable!("it was looked for") };
        match lent.try_publish() {
            Ok(seq) => {
                self.loans -= 1;
                Ok(seq)
            }
            Err(Unpublished { loan: lent, why }) => {
                *loan = Some(lent);
                Err(why.into())
            }
        }
    }
}

/// What the next thread that has the publisher ends: nobody waits to let go of a loan.
#[derive(Default)]
struct GivenBack {
    loans: Mutex<Vec<Lent>>,
    /// Counted after their loans are in the list.
    users: AtomicUsize,
}

// SAFETY: what is in it is ended by who has the publisher, see `Sender`.
unsafe impl Send for GivenBack {}
// SAFETY: as above.
unsafe impl Sync for GivenBack {}

/// What a publisher and its loans share.
pub(crate) struct Shared {
    port: Port<Sender>,
    given_back: Arc<GivenBack>,
    /// How long a publish waits for reliable subscribers.
    timeout: Duration,
}

impl Shared {
    /// `what`: its class and name.
    pub(crate) fn new(publisher: CorePublisher<[u8]>, timeout: Duration, what: String) -> Self {
        let given_back = Arc::<GivenBack>::default();
        let (publisher, loans, users) = (Box::new(publisher), 0, 0);
        let sender = Sender { publisher, loans, users, given_back: given_back.clone() };
        Self { port: Port::new(sender, what), given_back, timeout }
    }

    /// For the node that closes it.
    pub(crate) fn weak(&self) -> Weak<dyn Close> {
        self.port.weak()
    }

    pub(crate) fn close(&self, py: Python<'_>) {
        self.port.close(py);
    }

    /// The publisher for this thread.
    pub(crate) fn hold(&self) -> PyResult<Held<'_, Sender>> {
        self.port.hold()
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.port.is_closing()
    }

    /// A loan, which keeps this.
    pub(crate) fn lend(self: &Arc<Self>, size: usize) -> PyResult<LentBy> {
        let (loan, data) = self.hold()?.lend(size).or_raise()?;
        Ok(LentBy { loan: Some(loan), data, size, shared: Arc::clone(self) })
    }

    /// Runs `call`, which publishes, once there is room for a message. The interpreter's lock is
    /// let go of, and signals are handled meanwhile.
    pub(crate) fn send<T: Send>(
        &self,
        py: Python<'_>,
        mut held: Held<'_, Sender>,
        mut call: impl FnMut(&mut Sender) -> outlive::Result<T> + Send,
    ) -> PyResult<T> {
        let sender = &mut *held;
        let sent = py.detach(|| {
            sender.take_back();
            sender.publisher.wait_for_room(Deadline::AT_ONCE)?;
            call(sender)
        });
        match sent {
            Err(e) if e.kind() == ErrorKind::WouldBlock && !self.timeout.is_zero() => {}
            sent => return sent.or_raise(),
        }
        let sent = held.wait_in_slices(py, Deadline::after(self.timeout), |sender, slice| {
            loop {
                sender.publisher.wait_for_room(slice)?;
                match call(sender) {
                    // A subscriber has joined that has yet to read as much.
                    Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                    sent => return Ok(sent),
                }
            }
        });
        sent?.or_raise()
    }

    /// From any thread, which waits for nobody.
    pub(crate) fn give_back(&self, loan: Lent) {
        if self.port.is_forked() {
            // The chunk is the parent's, and a lock may be that of a thread that is not here.
            return std::mem::forget(loan);
        }
        self.given_back.loans.lock().unwrap_or_else(|e| e.into_inner()).push(loan);
        self.port.look_after(|sender| {
            sender.take_back();
        });
    }

    /// Nothing refers to the memory of a loan any more.
    fn end_use(&self) {
        self.given_back.users.fetch_add(1, Ordering::Release);
        self.port.leave_if_closing();
    }
}

/// A loan whose publisher `LentBy` keeps.
type Lent = CoreLoan<'static, [u8]>;

/// A loan of the core until it is published, and the publisher whose memory it keeps.
pub(crate) struct LentBy {
    pub(crate) loan: Option<Lent>,
    pub(crate) data: usize,
    pub(crate) size: usize,
    pub(crate) shared: Arc<Shared>,
}

// SAFETY: the loan is used and dropped by who has the publisher only, see `Shared`.
unsafe impl Send for LentBy {}

impl LentBy {
    pub(crate) fn publish(&mut self, by: &mut Sender) -> outlive::Result<u64> {
        by.publish(&mut self.loan)
    }
}

impl Drop for LentBy {
    fn drop(&mut self) {
        if let Some(loan) = self.loan.take() {
            self.shared.give_back(loan);
        }
        self.shared.end_use();
    }
}
