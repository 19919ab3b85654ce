//! The UR5: forward kinematics, and all closed-form inverse solutions.
//!
//! Two of the first joint (shoulder left or right) times two of the fifth (wrist up or down) times
//! two of the third (elbow up or down). A pose is refused near what makes joints run away:
//! wrist (axes 4 and 6 parallel), elbow (arm stretched), shoulder (wrist centre above the base).

use std::f64::consts::{FRAC_PI_2, PI, TAU};

use crate::pose::Pose;

/// Joints.
pub const JOINTS: usize = 6;
/// Angles, rad.
pub type Joints = [f64; JOINTS];

// Universal Robots, "DH parameters for calculations of kinematics and dynamics", UR5; m.
const D1: f64 = 0.089_159;
const A2: f64 = -0.425;
const A3: f64 = -0.392_25;
const D4: f64 = 0.109_15;
const D5: f64 = 0.094_65;
const D6: f64 = 0.082_3;

/// Largest angle either way: 360 degrees (UR5 data sheet).
pub const ANGLE_MAX: f64 = TAU;
/// Largest speed of a joint: 180 degrees/s (UR5 data sheet), rad/s.
pub const SPEED_MAX: f64 = PI;

/// Sine of the angle (wrist, elbow), or share of the reach (shoulder), below which a pose counts as
/// singular. This example's own choice: a hundredth is about half a degree.
pub const SINGULAR: f64 = 0.01;
/// How exactly forward kinematics must give the pose back, m.
pub const CHECK_M: f64 = 1e-9;

/// Why there is no solution to go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSolution {
    /// Out of reach, or not a finite pose.
    Unreachable,
    /// Joints 4 and 6 turn about the same axis.
    WristSingular,
    /// The arm is stretched or folded.
    ElbowSingular,
    /// The wrist is on the first joint's axis.
    ShoulderSingular,
    /// Forward kinematics does not confirm the solution.
    NotConfirmed,
}

/// Up to eight solutions.
#[derive(Clone, Copy, Debug)]
pub struct Solutions {
    all: [Joints; 8],
    count: usize,
}

impl Solutions {
    /// Each in (-pi, pi].
    pub fn as_slice(&self) -> &[Joints] {
        &self.all[..self.count]
    }

    /// The one nearest to `last`, each joint with as many full turns as bring it nearest.
    pub fn nearest(&self, last: &Joints) -> Option<Joints> {
        let distance =
            |q: &Joints| -> f64 { q.iter().zip(last).map(|(a, b)| wrap(a - b).powi(2)).sum() };
        let best = self.as_slice().iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
        Some(std::array::from_fn(|i| last[i] + wrap(best[i] - last[i])))
    }
}

/// The same angle in (-pi, pi].
pub fn wrap(angle: f64) -> f64 {
    let turned = (angle + PI).rem_euclid(TAU) - PI;
    if turned <= -PI { turned + TAU } else { turned }
}

/// Where the tool is.
pub fn forward(q: &Joints) -> Pose {
    let steps = [
        Pose::dh(q[0], D1, 0.0, FRAC_PI_2),
        Pose::dh(q[1], 0.0, A2, 0.0),
        Pose::dh(q[2], 0.0, A3, 0.0),
        Pose::dh(q[3], D4, 0.0, FRAC_PI_2),
        Pose::dh(q[4], D5, 0.0, -FRAC_PI_2),
        Pose::dh(q[5], D6, 0.0, 0.0),
    ];
    steps.iter().fold(Pose::IDENTITY, |pose, step| pose.times(step))
}

/// All solutions; none for a pose out of reach. Where joint 6 is free (wrist singularity) it takes
/// the value `q6_free`.
pub fn inverse(pose: &Pose, q6_free: f64) -> Solutions {
    let t = &pose.0;
    let mut found = Solutions { all: [[0.0; JOINTS]; 8], count: 0 };
    if t.iter().flatten().any(|x| !x.is_finite()) {
        return found;
    }
    // The centre of the wrist lies D4 beside the plane of the arm.
    let (wx, wy) = (t[0][3] - D6 * t[0][2], t[1][3] - D6 * t[1][2]);
    let reach = wx.hypot(wy);
    if reach < D4 {
        return found;
    }
    let (towards, beside) = (wy.atan2(wx), (D4 / reach).acos());
    for q1 in [towards + beside + FRAC_PI_2, towards - beside + FRAC_PI_2] {
        let (s1, c1) = q1.sin_cos();
        let Some(q5) = arc_cosine((t[0][3] * s1 - t[1][3] * c1 - D4) / D6) else { continue };
        for q5 in [q5, -q5] {
            let s5 = q5.sin();
            let q6 = if s5.abs() < 1e-9 {
                q6_free
            } else {
                let y = (t[1][1] * c1 - t[0][1] * s1) / s5;
                y.atan2((t[0][0] * s1 - t[1][0] * c1) / s5)
            };
            // What is left for joints 2, 3 and 4: a planar arm.
            let wrist =
                Pose::dh(q5, D5, 0.0, -FRAC_PI_2).times(&Pose::dh(q6, D6, 0.0, 0.0)).inverse();
            let arm = Pose::dh(q1, D1, 0.0, FRAC_PI_2).inverse().times(pose).times(&wrist).0;
            let (x, y) = (arm[0][3], arm[1][3]);
            let cosine = (x * x + y * y - A2 * A2 - A3 * A3) / (2.0 * A2 * A3);
            let Some(q3) = arc_cosine(cosine) else { continue };
            let sum = arm[1][0].atan2(arm[0][0]);
            for q3 in [q3, -q3] {
                let q2 = y.atan2(x) - (A3 * q3.sin()).atan2(A2 + A3 * q3.cos());
                let q = [q1, q2, q3, sum - q2 - q3, q5, q6];
                found.all[found.count] = q.map(wrap);
                found.count += 1;
            }
        }
    }
    found
}

/// `None` outside the domain, but for rounding.
fn arc_cosine(x: f64) -> Option<f64> {
    (x.abs() <= 1.0 + 1e-9).then(|| x.clamp(-1.0, 1.0).acos())
}

/// The solution to go to from `last`: the nearest, confirmed by forward kinematics, and not near a
/// singularity.
///
/// # Errors
/// Why there is none. It is then no command: stop.
pub fn solve(pose: &Pose, last: &Joints) -> Result<Joints, NoSolution> {
    let found = inverse(pose, last[5]);
    let q = found.nearest(last).ok_or(NoSolution::Unreachable)?;
    if q[4].sin().abs() < SINGULAR {
        return Err(NoSolution::WristSingular);
    }
    if q[2].sin().abs() < SINGULAR {
        return Err(NoSolution::ElbowSingular);
    }
    let (wx, wy) = (pose.0[0][3] - D6 * pose.0[0][2], pose.0[1][3] - D6 * pose.0[1][2]);
    if wx.hypot(wy) - D4 < SINGULAR * (A2 + A3).abs() {
        return Err(NoSolution::ShoulderSingular);
    }
    let (position, rotation) = forward(&q).distance(pose);
    // Not `>`: NaN must not pass.
    if !(position <= CHECK_M && rotation <= CHECK_M) {
        return Err(NoSolution::NotConfirmed);
    }
    Ok(q)
}

/// Joint angles near which the example's path begins: elbow up, tool down.
pub const HOME: Joints = [0.0, -FRAC_PI_2, FRAC_PI_2, -FRAC_PI_2, -FRAC_PI_2, 0.0];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::Planner;

    /// Angles from a generator of no importance, in (-pi, pi).
    fn angles(seed: &mut u64) -> Joints {
        std::array::from_fn(|_| {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((*seed >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0) * PI
        })
    }

    #[test]
    fn the_published_zero_position_is_met() {
        // All joints 0: the arm lies stretched along -x (Universal Robots' own figure).
        let p = forward(&[0.0; 6]).position();
        let want = [A2 + A3, -(D4 + D6), D1 - D5];
        assert!(p.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-12), "{p:?}");
    }

    #[test]
    fn every_solution_reaches_the_pose_and_the_angles_are_among_them() {
        let mut seed = 7;
        let mut most = 0;
        for _ in 0..20_000 {
            let q = angles(&mut seed);
            if q[4].sin().abs() < 1e-3 || q[2].sin().abs() < 1e-3 {
                continue;
            }
            let pose = forward(&q);
            let found = inverse(&pose, 0.0);
            most = most.max(found.count);
            for s in found.as_slice() {
                let (position, rotation) = forward(s).distance(&pose);
                assert!(position < CHECK_M && rotation < CHECK_M, "{q:?}: {position} {rotation}");
            }
            let back = found.nearest(&q).unwrap();
            assert!(back.iter().zip(q).all(|(a, b)| (a - b).abs() < 1e-6), "{q:?}: {back:?}");
        }
        assert_eq!(most, 8);
    }

    #[test]
    fn poses_out_of_reach_and_garbage_have_no_solution() {
        let far = Pose::pointing_down([1.2, 0.0, 0.3], 0.0);
        assert_eq!(solve(&far, &HOME), Err(NoSolution::Unreachable));
        let inside = Pose::pointing_down([0.02, 0.02, 0.5], 0.0);
        assert_eq!(solve(&inside, &HOME), Err(NoSolution::Unreachable));
        let mut nan = Pose::pointing_down([0.4, 0.0, 0.3], 0.0);
        nan.0[1][2] = f64::NAN;
        assert_eq!(solve(&nan, &HOME), Err(NoSolution::Unreachable));
    }

    #[test]
    fn singular_poses_are_refused_by_name() {
        let q = [0.3, -1.2, 1.1, 0.4, 0.0, 0.2];
        assert_eq!(solve(&forward(&q), &q), Err(NoSolution::WristSingular));
        let q = [0.3, -1.2, 1e-4, 0.4, 1.0, 0.2];
        assert_eq!(solve(&forward(&q), &q), Err(NoSolution::ElbowSingular));
        // The wrist's centre as near to the first axis as the geometry lets it.
        let mut pose = forward(&[0.3, -1.2, 1.1, 0.4, 1.0, 0.2]);
        let centre = [0.0, D4 + 1e-4, 0.6];
        for (row, centre) in pose.0.iter_mut().zip(centre) {
            row[3] = centre + D6 * row[2];
        }
        let found = inverse(&pose, 0.0);
        let last = found.as_slice()[0];
        assert_eq!(solve(&pose, &last), Err(NoSolution::ShoulderSingular));
    }

    #[test]
    fn the_example_path_is_followed_without_jumps() {
        let planner = Planner::default();
        let mut q = solve(&planner.pose(0.0), &HOME).unwrap();
        for ms in 1..10_000 {
            let next = solve(&planner.pose(f64::from(ms) * 1e-3), &q).unwrap();
            for (a, b) in next.iter().zip(q) {
                assert!((a - b).abs() <= SPEED_MAX * 1e-3, "{ms} ms: {q:?} {next:?}");
            }
            q = next;
        }
    }
}
