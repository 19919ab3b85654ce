//! Motion from rest to rest with bounded velocity, acceleration and jerk: seven pieces of constant
//! jerk.

/// Bounds of a motion, in units of the path per s, s^2, s^3.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Largest velocity.
    pub velocity: f64,
    /// Largest acceleration.
    pub acceleration: f64,
    /// Largest jerk.
    pub jerk: f64,
}

/// Place and its derivatives.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Motion {
    /// Place along the path.
    pub place: f64,
    /// Velocity.
    pub velocity: f64,
    /// Acceleration.
    pub acceleration: f64,
}

/// A motion over a distance. The deceleration mirrors the acceleration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    distance: f64,
    jerk: f64,
    /// Time of constant jerk, of the whole acceleration, of constant velocity, s.
    jerk_s: f64,
    ramp_s: f64,
    cruise_s: f64,
}

impl Profile {
    /// The quickest motion over `distance` (at least 0) within `limits` (above 0).
    pub fn new(distance: f64, limits: Limits) -> Self {
        let Limits { velocity: v, acceleration: a, jerk: j } = limits;
        let distance = distance.max(0.0);
        let (mut jerk_s, mut ramp_s) = if v * j >= a * a {
            (a / j, a / j + v / a)
        } else {
            let t = (v / j).sqrt();
            (t, 2.0 * t)
        };
        let mut cruise_s = distance / v - ramp_s;
        if cruise_s < 0.0 {
            // The velocity is never reached.
            cruise_s = 0.0;
            if distance >= 2.0 * a.powi(3) / (j * j) {
                jerk_s = a / j;
                ramp_s = jerk_s / 2.0 + ((jerk_s / 2.0).powi(2) + distance / a).sqrt();
            } else {
                jerk_s = (distance / (2.0 * j)).cbrt();
                ramp_s = 2.0 * jerk_s;
            }
        }
        Self { distance, jerk: j, jerk_s, ramp_s, cruise_s }
    }

    /// How long it takes, s.
    pub fn duration_s(&self) -> f64 {
        2.0 * self.ramp_s + self.cruise_s
    }

    /// Where it is `t_s` after its begin; before and after it rests.
    pub fn at(&self, t_s: f64) -> Motion {
        let total = self.duration_s();
        if t_s <= 0.0 {
            return Motion::default();
        }
        if t_s >= total {
            return Motion { place: self.distance, ..Motion::default() };
        }
        if t_s > total / 2.0 {
            // The second half is the first one backwards.
            let mirror = self.first_half(total - t_s);
            return Motion {
                place: self.distance - mirror.place,
                velocity: mirror.velocity,
                acceleration: -mirror.acceleration,
            };
        }
        self.first_half(t_s)
    }

    fn first_half(&self, t: f64) -> Motion {
        let (j, tj, ta) = (self.jerk, self.jerk_s, self.ramp_s);
        let a = j * tj;
        let v = a * (ta - tj);
        if t < tj {
            return Motion {
                place: j * t.powi(3) / 6.0,
                velocity: j * t * t / 2.0,
                acceleration: j * t,
            };
        }
        if t < ta - tj {
            return Motion {
                place: a / 6.0 * (3.0 * t * t - 3.0 * tj * t + tj * tj),
                velocity: a * (t - tj / 2.0),
                acceleration: a,
            };
        }
        if t < ta {
            let rest = ta - t;
            return Motion {
                place: v * ta / 2.0 - v * rest + j * rest.powi(3) / 6.0,
                velocity: v - j * rest * rest / 2.0,
                acceleration: j * rest,
            };
        }
        Motion { place: v * ta / 2.0 + v * (t - ta), velocity: v, acceleration: 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold_and_the_end_is_reached_whatever_the_distance() {
        let limits = Limits { velocity: 0.25, acceleration: 1.0, jerk: 10.0 };
        for distance in [0.0, 1e-6, 1e-3, 0.01, 0.05, 0.1, 0.5, 3.0] {
            let p = Profile::new(distance, limits);
            let dt = p.duration_s() / 20_000.0;
            let mut last = Motion::default();
            for i in 1..=20_000 {
                let m = p.at(f64::from(i) * dt);
                assert!(m.velocity <= limits.velocity * (1.0 + 1e-9));
                assert!(m.velocity >= -1e-9 && m.place >= last.place - 1e-12);
                assert!(m.acceleration.abs() <= limits.acceleration * (1.0 + 1e-9));
                if dt > 0.0 {
                    let jerk = (m.acceleration - last.acceleration) / dt;
                    assert!(jerk.abs() <= limits.jerk * (1.0 + 1e-3), "{distance}: jerk {jerk}");
                    let slope = (m.place - last.place) / dt;
                    let mean = (m.velocity + last.velocity) / 2.0;
                    assert!((slope - mean).abs() < 1e-5, "{distance}: {slope} for {mean}");
                }
                last = m;
            }
            assert!((last.place - distance).abs() < 1e-12);
        }
    }
}
