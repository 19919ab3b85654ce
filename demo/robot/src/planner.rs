//! The Cartesian path: straight lines between waypoints, at rest in each, with bounded jerk.

use crate::pose::Pose;
use crate::profile::{Limits, Profile};

/// ISO 10218-1 allows 0.25 m/s at reduced speed; acceleration and jerk are this example's own.
pub const LIMITS: Limits = Limits { velocity: 0.25, acceleration: 1.5, jerk: 15.0 };

/// Waypoints of the example: place in m, and turn of the tool that points down, in rad. Well away
/// from the singular poses.
const WAYPOINTS: [([f64; 3], f64); 4] = [
    ([0.35, -0.25, 0.25], 0.0),
    ([0.50, -0.05, 0.35], 0.4),
    ([0.45, 0.20, 0.25], 0.1),
    ([0.35, -0.05, 0.15], -0.3),
];

/// Plans a closed path for ever. It allocates nothing.
#[derive(Clone, Debug)]
pub struct Planner {
    segments: [Segment; WAYPOINTS.len()],
    round_s: f64,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    from: ([f64; 3], f64),
    to: ([f64; 3], f64),
    profile: Profile,
    length: f64,
}

impl Default for Planner {
    fn default() -> Self {
        let segments = std::array::from_fn(|i| {
            let (from, to) = (WAYPOINTS[i], WAYPOINTS[(i + 1) % WAYPOINTS.len()]);
            let squares = (0..3).map(|k| (to.0[k] - from.0[k]).powi(2)).sum::<f64>();
            let length = squares.sqrt();
            Segment { from, to, profile: Profile::new(length, LIMITS), length }
        });
        let round_s = segments.iter().map(|s: &Segment| s.profile.duration_s()).sum();
        Self { segments, round_s }
    }
}

impl Planner {
    /// The pose `t_s` after the begin.
    pub fn pose(&self, t_s: f64) -> Pose {
        let mut t = t_s.max(0.0) % self.round_s;
        let mut at = self.segments[0];
        for segment in self.segments {
            at = segment;
            if t < segment.profile.duration_s() {
                break;
            }
            t -= segment.profile.duration_s();
        }
        let share = at.profile.at(t).place / at.length;
        let between = |a: f64, b: f64| a + (b - a) * share;
        let place = std::array::from_fn(|k| between(at.from.0[k], at.to.0[k]));
        Pose::pointing_down(place, between(at.from.1, at.to.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinematics::{HOME, SPEED_MAX, solve};

    /// For minutes: joints that turned a whole round each time would end at their limit.
    #[test]
    fn the_path_can_be_followed_round_after_round() {
        let planner = Planner::default();
        let mut joints = solve(&planner.pose(0.0), &HOME).unwrap();
        let begin = joints;
        for period_s in [1e-3, 4e-3, 32e-3] {
            for n in 0..(5.0 * planner.round_s / period_s) as u32 {
                let t_s = f64::from(n) * period_s;
                let next = solve(&planner.pose(t_s), &joints)
                    .unwrap_or_else(|e| panic!("{t_s} s into the path: {e:?}"));
                let step = next.iter().zip(&joints).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(
                    step <= SPEED_MAX * period_s,
                    "{t_s} s into the path: {step} rad in a cycle"
                );
                joints = next;
            }
            joints = begin;
        }
    }

    #[test]
    fn the_path_is_smooth_and_closed() {
        let planner = Planner::default();
        let dt = 1e-3;
        let mut last = planner.pose(0.0).position();
        let mut v_last = [0.0; 3];
        for i in 1..(2.0 * planner.round_s / dt) as u32 {
            let p = planner.pose(f64::from(i) * dt).position();
            let v: [f64; 3] = std::array::from_fn(|k| (p[k] - last[k]) / dt);
            let speed = v.iter().map(|x| x * x).sum::<f64>().sqrt();
            assert!(speed <= LIMITS.velocity * 1.001, "{speed}");
            for k in 0..3 {
                assert!((v[k] - v_last[k]).abs() / dt <= LIMITS.acceleration * 1.1);
            }
            (last, v_last) = (p, v);
        }
        let (again, _) = planner.pose(0.0).distance(&planner.pose(planner.round_s));
        assert!(again < 1e-9);
    }
}
