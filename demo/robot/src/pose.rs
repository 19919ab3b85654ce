//! Rigid poses as 3x4 matrices, and what is needed to interpolate them.

/// Rotation and translation: three rows of a homogeneous matrix. Lengths in m.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pose(pub [[f64; 4]; 3]);

impl Pose {
    /// No rotation, at the origin.
    pub const IDENTITY: Self =
        Self([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]);

    /// A step of the standard Denavit-Hartenberg convention.
    pub fn dh(theta: f64, d: f64, a: f64, alpha: f64) -> Self {
        let ((s, c), (sa, ca)) = (theta.sin_cos(), alpha.sin_cos());
        Self([[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0.0, sa, ca, d]])
    }

    /// `self` after `other`.
    pub fn times(&self, other: &Self) -> Self {
        let (a, b) = (&self.0, &other.0);
        let mut out = [[0.0; 4]; 3];
        for (i, row) in out.iter_mut().enumerate() {
            for (j, value) in row.iter_mut().enumerate() {
                *value = (0..3).map(|k| a[i][k] * b[k][j]).sum();
            }
            row[3] += a[i][3];
        }
        Self(out)
    }

    /// The pose that undoes this one.
    pub fn inverse(&self) -> Self {
        let a = &self.0;
        let mut out = [[0.0; 4]; 3];
        for i in 0..3 {
            for j in 0..3 {
                out[i][j] = a[j][i];
            }
            out[i][3] = -(0..3).map(|k| a[k][i] * a[k][3]).sum::<f64>();
        }
        Self(out)
    }

    /// Where it is, m.
    pub fn position(&self) -> [f64; 3] {
        [self.0[0][3], self.0[1][3], self.0[2][3]]
    }

    /// Distance of the positions, m, and of the rotations, as the norm of their difference.
    pub fn distance(&self, other: &Self) -> (f64, f64) {
        let (mut position, mut rotation) = (0.0, 0.0);
        for i in 0..3 {
            position += (self.0[i][3] - other.0[i][3]).powi(2);
            for j in 0..3 {
                rotation += (self.0[i][j] - other.0[i][j]).powi(2);
            }
        }
        (position.sqrt(), rotation.sqrt())
    }

    /// The tool pointing down (its z axis against the base's), turned by `yaw` rad.
    pub fn pointing_down(position: [f64; 3], yaw: f64) -> Self {
        let (s, c) = yaw.sin_cos();
        let [x, y, z] = position;
        Self([[c, s, 0.0, x], [s, -c, 0.0, y], [0.0, 0.0, -1.0, z]])
    }
}
