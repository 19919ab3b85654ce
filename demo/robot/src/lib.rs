//! A reference robot on the real-time core: a planner, the kinematics of a UR5, an EtherCAT master
//! and mock drives, assembled into a cell that stops safely whatever part of it fails.
//!
//! | file | what |
//! |---|---|
//! | `profile` | motion of bounded jerk between two rests |
//! | `pose`, `planner` | Cartesian path along waypoints |
//! | `kinematics` | UR5: forward, all inverse solutions |
//! | `ethercat` | frame, LRW datagram, working counter |
//! | `cia402` | states, control and status words |
//! | `drive` | mock drives: lag, ramp, brake, watchdog |
//! | `messages`, `master` | what is handed on; the last stage |
//! | `again` | a part goes on with the successor of another |
//! | `options`, `cell` | what all processes agree on; the whole |
//!
//! # Sources of the constants
//! | of | from |
//! |---|---|
//! | profile | Biagiotti, Melchiorri, *Trajectory Planning for Automatic Machines*, 3.4 |
//! | speed of the tool | ISO 10218-1, reduced speed 0.25 m/s |
//! | lengths of the UR5 | Universal Robots, *DH parameters for kinematics and dynamics* |
//! | limits of its joints | UR5 data sheet |
//! | frame, working counter, watchdog (register 0x0420) | ETG.1000.4, IEC 61158-4-12 |
//! | states and words of drives | IEC 61800-7-201 (CiA 402-2) |
//! | path, lag, ramp, encoder | this example's own |
#![deny(unsafe_code)]

pub mod again;
pub mod cell;
pub mod cia402;
pub mod drive;
pub mod ethercat;
pub mod kinematics;
pub mod master;
pub mod messages;
mod options;
pub mod planner;
pub mod pose;
pub mod profile;
