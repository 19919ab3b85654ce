//! A node's death as a member of a wait.

use crate::node::Watch;
use crate::wait::member::{Look, Member, Overslept, Plan};

impl Member for Watch {
    fn is_ready(&mut self, _look: &mut Look) -> bool {
        self.has_news()
    }

    fn plan<'a>(&'a self, plan: &mut Plan<'a>) -> bool {
        !self.has_news() && plan.life(self.peer())
    }

    fn overslept(&mut self, _how: Overslept) -> bool {
        self.peer().proof_of_death().is_some()
    }
}
