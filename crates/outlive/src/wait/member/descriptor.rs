//! Foreign file descriptors as members of a wait.

use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use super::{Look, Member, Plan};
use crate::os::sleep::poll;

/// A file descriptor from outside this crate: a socket, a pipe, a terminal, a device.
///
/// Ready when `poll` says so, including hang-ups and errors: after those it stays ready until you
/// take it out of the list.
///
/// Costs: with one of these in the list the whole wait goes through descriptors. Each sleep takes
/// one more `ppoll`, and each publisher that wakes it sends a datagram instead of waking a futex (a
/// few us instead of below 1 us). See [`WaitSet`](crate::WaitSet).
///
/// # Examples
/// ```
/// use std::io::Write;
/// use std::time::Duration;
/// let (reader, mut writer) = std::os::unix::net::UnixStream::pair().unwrap();
/// let mut input = outlive::Descriptor::readable(&reader);
/// let mut set = outlive::WaitSet::new();
/// assert!(set.wait(&mut [&mut input], Duration::ZERO)?.is_empty());
/// writer.write_all(b"x").unwrap();
/// assert_eq!(set.wait(&mut [&mut input], Duration::from_secs(5))?.len(), 1);
/// assert!(input.is_readable() && !input.is_hung_up());
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Descriptor<'fd> {
    fd: RawFd,
    wanted: i16,
    found: i16,
    _open: PhantomData<BorrowedFd<'fd>>,
}

impl<'fd> Descriptor<'fd> {
    /// Ready when there is something to read.
    ///
    /// # Examples
    /// ```
    /// use std::io::Write;
    ///
    /// let (reader, mut writer) = std::io::pipe().unwrap();
    /// let mut input = outlive::Descriptor::readable(&reader);
    /// writer.write_all(b"x").unwrap();
    /// outlive::WaitSet::new().wait(&mut [&mut input], std::time::Duration::from_secs(5))?;
    /// assert!(input.is_readable());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn readable(fd: &'fd impl AsFd) -> Self {
        Self::new(fd, poll::READABLE)
    }

    /// Ready when there is room to write.
    ///
    /// # Examples
    /// ```
    /// use std::{io::Write, os::unix::net::UnixStream, time::Duration};
    ///
    /// let (_reader, mut writer) = UnixStream::pair().unwrap();
    /// writer.set_nonblocking(true).unwrap();
    /// let mut set = outlive::WaitSet::new();
    /// let mut output = outlive::Descriptor::writable(&writer);
    /// assert!(set.wait(&mut [&mut output], Duration::from_secs(5))?.contains(0));
    /// while (&writer).write(&[0; 4096]).is_ok() {} // the reader is slow
    /// assert!(set.wait(&mut [&mut output], Duration::from_millis(1))?.is_empty());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn writable(fd: &'fd impl AsFd) -> Self {
        Self::new(fd, poll::WRITABLE)
    }

    /// Ready for either.
    ///
    /// # Examples
    /// ```
    /// use std::{os::unix::net::UnixStream, time::Duration};
    ///
    /// let (socket, _peer) = UnixStream::pair().unwrap();
    /// let mut either = outlive::Descriptor::readable_or_writable(&socket);
    /// outlive::WaitSet::new().wait(&mut [&mut either], Duration::from_secs(5))?;
    /// assert!(either.is_writable() && !either.is_readable());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn readable_or_writable(fd: &'fd impl AsFd) -> Self {
        Self::new(fd, poll::READABLE | poll::WRITABLE)
    }

    fn new(fd: &'fd impl AsFd, wanted: i16) -> Self {
        let fd = fd.as_fd().as_raw_fd();
        Self { fd, wanted, found: 0, _open: PhantomData }
    }

    /// The last wait found something to read.
    ///
    /// # Examples
    /// ```
    /// use std::{io::Write, time::Duration};
    ///
    /// let (reader, mut writer) = std::io::pipe().unwrap();
    /// let mut input = outlive::Descriptor::readable(&reader);
    /// writer.write_all(b"x").unwrap();
    /// assert!(!input.is_readable()); // no wait has looked at it yet
    /// outlive::WaitSet::new().wait(&mut [&mut input], Duration::from_secs(5))?;
    /// assert!(input.is_readable());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn is_readable(&self) -> bool {
        self.found & poll::READABLE != 0
    }

    /// The last wait found room to write.
    ///
    /// # Examples
    /// ```
    /// let (_reader, writer) = std::io::pipe().unwrap();
    /// let mut output = outlive::Descriptor::writable(&writer);
    /// outlive::WaitSet::new().wait(&mut [&mut output], std::time::Duration::from_secs(5))?;
    /// assert!(output.is_writable()); // the pipe is empty
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn is_writable(&self) -> bool {
        self.found & poll::WRITABLE != 0
    }

    /// The last wait found the other side gone.
    ///
    /// # Examples
    /// ```
    /// use std::{os::unix::net::UnixStream, time::Duration};
    ///
    /// let (socket, peer) = UnixStream::pair().unwrap();
    /// let mut input = outlive::Descriptor::readable(&socket);
    /// drop(peer);
    /// outlive::WaitSet::new().wait(&mut [&mut input], Duration::from_secs(5))?;
    /// assert!(input.is_hung_up()); // take it out of the list now
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn is_hung_up(&self) -> bool {
        self.found & poll::HUNG_UP != 0
    }

    /// The last wait found it broken or closed.
    ///
    /// # Examples
    /// ```
    /// let (reader, writer) = std::io::pipe().unwrap();
    /// let mut output = outlive::Descriptor::writable(&writer);
    /// drop(reader); // nobody can read what is written from here on
    /// outlive::WaitSet::new().wait(&mut [&mut output], std::time::Duration::from_secs(5))?;
    /// assert!(output.has_failed());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn has_failed(&self) -> bool {
        self.found & poll::FAILED != 0
    }
}

impl Member for Descriptor<'_> {
    fn is_ready(&mut self, look: &mut Look) -> bool {
        look.ask(self.fd, self.wanted);
        false
    }

    fn plan<'a>(&'a self, _plan: &mut Plan<'a>) -> bool {
        true
    }

    fn found(&mut self, events: i16) -> bool {
        self.found = events;
        events != 0
    }
}
