//! What a port says of itself in its token: `RELIABILITY:DURABILITY:HISTORY,DEPTH:...`, where
//! nothing stands for what is the default of rmw_zenoh.

/// Of what says no number, as rmw_zenoh has it.
const DEPTH_DEFAULT: u64 = 42;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Qos {
    /// `RELIABLE`, or `BEST_EFFORT`.
    pub(crate) reliable: bool,
    /// `TRANSIENT_LOCAL`: keeps messages for those that come later; or `VOLATILE`.
    pub(crate) keeps: bool,
    /// How many messages (`KEEP_LAST`); none for all (`KEEP_ALL`).
    pub(crate) depth: Option<u64>,
}

impl Qos {
    /// That of services.
    pub(crate) const SERVICE: Self = Self { reliable: true, keeps: false, depth: Some(10) };

    /// As it is written in a token; deadline, lifespan and lease are endless.
    pub(crate) fn in_token(self) -> String {
        let reliability = if self.reliable { "" } else { "2" };
        let durability = if self.keeps { "1" } else { "" };
        let history = match self.depth {
            Some(depth) => format!(",{depth}"),
            None => "2,".into(),
        };
        format!("{reliability}:{durability}:{history}:,:,:,,")
    }

    /// What is missing or strange is the default.
    pub(crate) fn parse(text: &str) -> Self {
        let mut parts = text.split(':');
        let reliable = parts.next() != Some("2");
        let keeps = parts.next() == Some("1");
        let (kind, depth) = parts.next().and_then(|p| p.split_once(',')).unwrap_or(("", ""));
        let depth = match (kind, depth.parse()) {
            ("2", _) => None,
            (_, Ok(depth)) if depth > 0 => Some(depth),
            _ => Some(DEPTH_DEFAULT),
        };
        Self { reliable, keeps, depth }
    }

    /// What one subscription can ask of several publishers: as much as all of them give.
    pub(crate) fn of_all<'a>(all: impl Iterator<Item = &'a Self>) -> Option<Self> {
        all.copied().reduce(|a, b| Self {
            reliable: a.reliable && b.reliable,
            keeps: a.keeps && b.keeps,
            depth: a.depth.zip(b.depth).map(|(a, b)| a.max(b)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_what_it_is_and_what_is_strange_is_the_default() {
        let (reliable, keeps) = (true, true);
        for (qos, text) in [
            (Qos::SERVICE, "::,10:,:,:,,"),
            (Qos { reliable, keeps, depth: Some(1) }, ":1:,1:,:,:,,"),
            (Qos { reliable: false, keeps, depth: Some(7) }, "2:1:,7:,:,:,,"),
            (Qos { reliable: false, keeps: false, depth: None }, "2::2,:,:,:,,"),
        ] {
            assert_eq!((qos.in_token().as_str(), Qos::parse(text)), (text, qos));
        }
        let default = Qos { reliable, keeps: false, depth: Some(42) };
        for text in ["::,:,:,:,,", "1:2:1,42:,:,:,,", "", ":", "x:y:z", "0:0:0,0:,:,:,,", ":::"] {
            assert_eq!(Qos::parse(text), default, "{text}");
        }
        assert_eq!(Qos::parse("2:1:2,9:1,2:3,4:1,5,6").depth, None);
    }

    #[test]
    fn a_subscription_asks_for_what_all_publishers_give() {
        let of = |texts: &[&str]| {
            let all: Vec<_> = texts.iter().map(|text| Qos::parse(text)).collect();
            Qos::of_all(all.iter()).map(Qos::in_token)
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[":1:,5"]).as_deref(), Some(":1:,5:,:,:,,"));
        assert_eq!(of(&[":1:,5", ":1:,7"]).as_deref(), Some(":1:,7:,:,:,,"));
        assert_eq!(of(&[":1:,5", "2:1:,7"]).as_deref(), Some("2:1:,7:,:,:,,"));
        assert_eq!(of(&[":1:,5", "::2,"]).as_deref(), Some("::2,:,:,:,,"));
    }
}
