//! Points of a laser scanner, a depth camera or a radar.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Header, message};
use crate::types::Headed;
use crate::{Error, ErrorKind, Result};

/// A header and any number of points, in the sensor's frame `header.frame_id`.
///
/// # Examples
/// ```
/// use outlive::msg::{Header, PointCloud, PointCloudHeader, PointXyzi};
///
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let publisher = node.topic::<PointCloud>("/lidar")?.publisher()?;
/// let mut subscriber = node.topic::<PointCloud>("/lidar")?.subscriber()?;
/// let mut cloud = publisher.loan_headed(PointCloudHeader::row(Header::now("lidar"), 3), 3)?;
/// for (i, point) in cloud.tail_mut().iter_mut().enumerate() {
///     *point = PointXyzi { x: i as f32, y: 0.0, z: 0.0, intensity: 0.5 };
/// }
/// cloud.publish()?;
/// let cloud = subscriber.receive()?.expect("sent just now");
/// assert_eq!(cloud.points()[2].x, 2.0);
/// # Ok::<(), outlive::Error>(())
/// ```
pub type PointCloud = Headed<PointCloudHeader, PointXyzi>;

/// The header before the points; 64 bytes, so that the points begin on a cache line.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::msg::{Header, PointCloud, PointCloudHeader};
///
/// let publisher = node.topic::<PointCloud>("/lidar")?.publisher()?;
/// let header = Header::now("lidar");
/// let header = PointCloudHeader { header, width: 512, height: 16, ..Default::default() };
/// let cloud = publisher.loan_headed(header, 512 * 16)?; // ordered: a row for each laser
/// assert_eq!(cloud.row(15).expect("the last row").len(), 512);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct PointCloudHeader {
    /// When, and in which frame.
    pub header: Header,
    /// Points in a row.
    pub width: u32,
    /// Rows; 1 for an unordered cloud.
    pub height: u32,
    /// Zero.
    pub reserved: [u32; 4],
}
message!(PointCloudHeader, "outlive/PointCloud", header, width, height, reserved);

impl PointCloudHeader {
    /// For an unordered cloud: `points` points in one row.
    ///
    /// # Examples
    /// ```
    /// use outlive::msg::{Header, PointCloudHeader};
    ///
    /// let header = PointCloudHeader::row(Header::now("lidar"), 1000);
    /// assert_eq!((header.width, header.height), (1000, 1)); // unordered
    /// ```
    pub fn row(header: Header, points: u32) -> Self {
        Self { header, width: points, height: 1, reserved: [0; 4] }
    }

    /// Checks that `points` points are as many as this header promises.
    ///
    /// # Errors
    /// `Corrupt` when they are fewer.
    ///
    /// # Examples
    /// ```
    /// use outlive::{ErrorKind, msg::PointCloudHeader};
    ///
    /// let header = PointCloudHeader { width: 4, height: 3, ..Default::default() };
    /// assert!(header.check(12).is_ok());
    /// assert_eq!(header.check(11).unwrap_err().kind(), ErrorKind::Corrupt);
    /// ```
    pub fn check(&self, points: usize) -> Result<()> {
        let Self { width, height, .. } = self;
        // The product of two u32 fits a u64.
        if u64::from(*width) * u64::from(*height) <= points as u64 {
            return Ok(());
        }
        let why = format!(
            "its header promises {height} rows of {width} points, and {points} points follow it; \
             correct the sender"
        );
        Err(Error::new(ErrorKind::Corrupt, "reading", "a point cloud", why))
    }
}

/// A point; 16 bytes. A ray without an echo has NaN coordinates.
///
/// # Examples
/// ```
/// use outlive::msg::PointXyzi;
///
/// let wall = PointXyzi { x: 3.0, y: 4.0, z: 0.0, intensity: 0.5 };
/// assert_eq!(wall.x.hypot(wall.y), 5.0); // m from the sensor
/// let nothing = PointXyzi { x: f32::NAN, y: f32::NAN, z: f32::NAN, intensity: 0.0 };
/// let echoes = [wall, nothing].into_iter().filter(|point| !point.x.is_nan());
/// assert_eq!(echoes.count(), 1);
/// ```
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct PointXyzi {
    /// Forward, m; right in optical frames.
    pub x: f32,
    /// Left, m; down in optical frames.
    pub y: f32,
    /// Up, m; forward in optical frames.
    pub z: f32,
    /// Strength of the echo, 0 to 1, or as the sensor counts it; 0 without.
    pub intensity: f32,
}
message!(PointXyzi, "outlive/PointXyzi", x, y, z, intensity);

impl Headed<PointCloudHeader, PointXyzi> {
    /// Checks that all points the header promises are there.
    ///
    /// # Errors
    /// As [`PointCloudHeader::check`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::msg::{PointCloud, PointCloudHeader, PointXyzi};
    ///
    /// let publisher = node.topic::<PointCloud>("/lidar")?.publisher()?;
    /// let mut subscriber = node.topic::<PointCloud>("/lidar")?.subscriber()?;
    /// let header = PointCloudHeader { width: 4, height: 3, ..Default::default() };
    /// publisher.publish_headed(header, &[PointXyzi::default(); 11])?; // one point is missing
    /// let cloud = subscriber.receive()?.expect("sent just now");
    /// assert!(cloud.check().is_err() && cloud.points().len() == 11);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn check(&self) -> Result<()> {
        self.header().check(self.tail().len())
    }

    /// The points.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::msg::{Header, PointCloud, PointCloudHeader, PointXyzi};
    ///
    /// let publisher = node.topic::<PointCloud>("/lidar")?.publisher()?;
    /// let mut subscriber = node.topic::<PointCloud>("/lidar")?.subscriber()?;
    /// let wall = PointXyzi { x: 2.5, ..PointXyzi::default() };
    /// publisher.publish_headed(PointCloudHeader::row(Header::now("lidar"), 3), &[wall; 3])?;
    /// let cloud = subscriber.receive()?.expect("sent just now");
    /// let nearest_m = cloud.points().iter().map(|point| point.x).fold(f32::INFINITY, f32::min);
    /// assert_eq!(nearest_m, 2.5);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn points(&self) -> &[PointXyzi] {
        self.tail()
    }

    /// Row `y` of an ordered cloud; `None` outside, also where the header promises more points
    /// than there are.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::msg::{PointCloud, PointCloudHeader, PointXyzi};
    ///
    /// let publisher = node.topic::<PointCloud>("/lidar")?.publisher()?;
    /// let header = PointCloudHeader { width: 2, height: 2, ..Default::default() };
    /// let mut cloud = publisher.loan_headed(header, 4)?;
    /// cloud.tail_mut().fill(PointXyzi { x: 1.5, ..Default::default() });
    /// assert_eq!(cloud.row(1).expect("the last one").len(), 2);
    /// assert!(cloud.row(2).is_none());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn row(&self, y: u32) -> Option<&[PointXyzi]> {
        let width = self.header().width as usize;
        let from = (y < self.header().height).then(|| (y as usize).checked_mul(width))??;
        self.tail().get(from..from.checked_add(width)?)
    }
}

#[cfg(test)]
mod tests {
    use zerocopy::IntoBytes;

    use super::*;

    #[test]
    fn rows_that_are_not_there_are_none() {
        let header = PointCloudHeader { width: 2, height: 3, ..PointCloudHeader::default() };
        let mut words = [0u64; 8 + 2 * 5];
        header.write_to_prefix(words.as_mut_bytes()).unwrap();
        let cloud = PointCloud::parse(words.as_bytes()).unwrap();
        assert_eq!(cloud.points().len(), 5);
        assert!(cloud.row(1).is_some_and(|r| r.len() == 2));
        assert!(cloud.row(2).is_none() && cloud.row(3).is_none() && cloud.row(u32::MAX).is_none());
        assert_eq!(
            cloud.check().unwrap_err().to_string(),
            "reading a point cloud: corrupt; its header promises 3 rows of 2 points, and 5 points \
             follow it; correct the sender"
        );
        let header = PointCloudHeader { width: 5, height: 1, ..header };
        header.write_to_prefix(words.as_mut_bytes()).unwrap();
        PointCloud::parse(words.as_bytes()).unwrap().check().unwrap();
    }
}
