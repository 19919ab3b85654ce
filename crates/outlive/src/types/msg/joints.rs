//! The state of a robot's joints.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Header, Text, message};
use crate::types::Headed;

/// A header and one [`Joint`] for each measured joint, however many: a gripper has one, a humanoid
/// forty, and neither pays for the other's.
///
/// # Examples
/// ```
/// use outlive::msg::{Header, Joint, JointState, JointStateHeader, Text};
///
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let publisher = node.topic::<JointState>("/joints")?.publisher()?;
/// let mut subscriber = node.topic::<JointState>("/joints")?.subscriber()?;
/// let elbow = Joint { name: Text::cut("elbow"), position: 1.57, ..Joint::default() };
/// publisher.publish_headed(JointStateHeader { header: Header::now("base_link") }, &[elbow])?;
/// let state = subscriber.receive()?.expect("sent just now");
/// assert_eq!(state.joint("elbow").map(|j| j.position), Some(1.57));
/// # Ok::<(), outlive::Error>(())
/// ```
pub type JointState = Headed<JointStateHeader, Joint>;

/// The header before the joints; 40 bytes.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::msg::{Header, JointState, JointStateHeader};
///
/// let publisher = node.topic::<JointState>("/joints")?.publisher()?;
/// let header = JointStateHeader { header: Header::now("base_link") };
/// let state = publisher.loan_headed(header, 6)?; // for six joints
/// assert_eq!((state.header().header.frame_id.as_str(), state.tail().len()), ("base_link", 6));
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct JointStateHeader {
    /// When; the frame is that of the robot's base and may be empty.
    pub header: Header,
}
message!(JointStateHeader, "outlive/JointState", header);

/// One joint; 56 bytes. NaN where not measured.
///
/// # Examples
/// ```
/// use outlive::msg::{Joint, Text};
///
/// let elbow = Joint {
///     name: Text::cut("elbow"),
///     position: 1.57, // rad
///     velocity: 0.0,
///     effort: f64::NAN, // this motor does not measure it
/// };
/// assert!(elbow.name.as_str() == "elbow" && elbow.effort.is_nan());
/// ```
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Joint {
    /// Its name, as in the robot's description.
    pub name: Text<32>,
    /// Position: rad for a rotating joint, m for a sliding one.
    pub position: f64,
    /// Velocity: rad/s, or m/s.
    pub velocity: f64,
    /// Effort: torque in N m, or force in N.
    pub effort: f64,
}
message!(Joint, "outlive/Joint", name, position, velocity, effort);

impl Headed<JointStateHeader, Joint> {
    /// The joint of that name.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::msg::{Joint, JointState, JointStateHeader, Text};
    ///
    /// let publisher = node.topic::<JointState>("/joints")?.publisher()?;
    /// let mut state = publisher.loan_headed(JointStateHeader::default(), 2)?;
    /// for (joint, name) in state.tail_mut().iter_mut().zip(["shoulder", "elbow"]) {
    ///     *joint = Joint { name: Text::cut(name), position: 0.5, ..Joint::default() };
    /// }
    /// assert_eq!(state.joint("elbow").map(|elbow| elbow.position), Some(0.5));
    /// assert!(state.joint("wrist").is_none());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn joint(&self, name: &str) -> Option<&Joint> {
        self.tail().iter().find(|j| j.name.as_str() == name)
    }
}
