//! Each way to send and to receive: alone or many by one call, all or the newest, waiting or not.
//! Begin with `modes`; in `chase` a publisher overwrites what is being read.

mod batches;
mod chase;
mod modes;
mod without_waiting;
