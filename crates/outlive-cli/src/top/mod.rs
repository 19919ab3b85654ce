//! `outlive top`: a domain in the terminal, as it goes.
//!
//! | file | what |
//! |---|---|
//! | `app` | what is shown, and what keys do |
//! | `draw` | how it looks, at any size from 80x24 |

mod app;
mod draw;
#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::Args;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use crate::absent::note_if_nobody;
use crate::exit::{Code, Failure, Outcome};
use crate::look::Look;
use crate::options::{DomainOptions, seconds};
use crate::os;
use app::App;
use outlive::Deadline;

/// Watch nodes, topics and locks in the terminal.
///
/// Rates, losses, memory; slow, stopped and dead nodes; held samples and locks. Looks from outside:
/// joins nothing, wakes nobody. Losses count from when `top` started, and are a lower bound.
#[derive(Args, Debug)]
#[command(after_help = "Keys:
  1 2 3, Tab   topics, nodes, locks           Up Down   choose
  Enter, Esc   one of them in detail, back    s r       sort by the next column, reverse
  /            only names with this           p         pause
  q            quit")]
pub(crate) struct TopArgs {
    /// Time between two looks.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    every: Duration,
}

pub(crate) fn run(args: &TopArgs, options: &DomainOptions) -> Outcome {
    let domain = options.domain()?;
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        let what = "top needs a terminal: use 'outlive topic list --json' and 'outlive node list'";
        return Err(Failure::new(Code::Usage, what));
    }
    os::catch_stop_signals()?;
    let every = args.every.clamp(Duration::from_millis(50), Duration::from_secs(3600));
    note_if_nobody(&domain);
    let mut app = App::new(domain.name().into());
    let mut terminal = ratatui::init();
    let done = (|| {
        let mut look: Option<Look> = None;
        let mut next = Deadline::AT_ONCE;
        while !app.leaves && !os::stop_asked() {
            if next.has_passed() {
                next = Deadline::after(every);
                let new = Look::at(&domain, look.as_ref())?;
                app.see(&new);
                look = Some(new);
            }
            let drawn = terminal.draw(|frame| draw::draw(frame, &app));
            drawn.map_err(|e| Failure::io("draw", &e))?;
            if event::poll(next.remaining().min(Duration::from_millis(100))).unwrap_or(false)
                && let Ok(Event::Key(key)) = event::read()
                && key.kind != KeyEventKind::Release
            {
                app.key(key);
            }
        }
        Ok(Code::Done)
    })();
    ratatui::restore();
    done
}
