//! How it looks, at any size from 80x24.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row as Cells, Table, TableState, Wrap};

use super::app::{App, View};
use crate::look::{Life, Mood};
use crate::output::bytes;

/// Draws all of it.
pub(super) fn draw(frame: &mut Frame<'_>, app: &App) {
    let parts = [Constraint::Length(2), Constraint::Min(3), Constraint::Length(1)];
    let [head, body, foot] = Layout::vertical(parts).areas(frame.area());
    frame.render_widget(Paragraph::new(heading(app)), head);
    if app.detail.is_some() {
        // A list of its size, and below it the one.
        let halves = [Constraint::Percentage(45), Constraint::Percentage(55)];
        let [list, detail] = Layout::vertical(halves).areas(body);
        table(frame, app, list);
        let lines: Vec<Line<'_>> = app.details().into_iter().map(Line::from).collect();
        let block = Block::default().borders(Borders::TOP).title(" in detail ");
        frame.render_widget(Paragraph::new(lines).block(block).wrap(Wrap { trim: false }), detail);
    } else {
        table(frame, app, body);
    }
    frame.render_widget(Paragraph::new(footing(app)), foot);
}

fn heading(app: &App) -> Vec<Line<'static>> {
    let look = &app.look;
    let of = |life| look.nodes.iter().filter(|n| n.life == life).count();
    let memory: u64 = look.topics.iter().map(|t| t.memory_bytes()).sum();
    let traffic: f64 = look.topics.iter().map(|t| t.bytes_per_s()).sum();
    let lost: u64 = look.topics.iter().map(|t| t.lost()).sum();
    let mut first = vec![
        Span::styled("outlive ", Style::new().add_modifier(Modifier::BOLD)),
        Span::raw(format!("{}  {} nodes", app.domain, look.nodes.len())),
    ];
    for (life, colour) in [(Life::Stopped, Color::Yellow), (Life::Dead, Color::Red)] {
        if of(life) > 0 {
            let text = format!(", {} {}", of(life), life.name());
            first.push(Span::styled(text, Style::new().fg(colour)));
        }
    }
    let (memory, traffic) = (bytes(memory), bytes(traffic as u64));
    first.push(Span::raw(format!("  {memory} shared  {traffic}/s  {lost} lost")));
    if app.paused {
        first.push(Span::styled("  held still", Style::new().fg(Color::Yellow)));
    }
    let mut tabs = Vec::new();
    for (number, view) in View::ALL.into_iter().enumerate() {
        let style = match view == app.view {
            true => Style::new().add_modifier(Modifier::REVERSED),
            false => Style::new(),
        };
        tabs.push(Span::styled(format!(" {} {} ", number + 1, view.name()), style));
        tabs.push(Span::raw(" "));
    }
    if app.typing || !app.filter.is_empty() {
        let cursor = if app.typing { "_" } else { "" };
        tabs.push(Span::raw(format!(" /{}{cursor}", app.filter)));
    }
    vec![Line::from(first), Line::from(tabs)]
}

fn table(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let columns = app.view.columns();
    let (sorted, backwards) = app.sort;
    let head = columns.iter().enumerate().map(|(at, (name, _))| {
        let mark = if at != sorted {
            ""
        } else if backwards {
            "^"
        } else {
            "v"
        };
        cell(format!("{name}{mark}"), is_number(name))
    });
    let head = Cells::new(head).style(Style::new().add_modifier(Modifier::BOLD));
    let rows = app.rows();
    let cells = rows.iter().map(|row| {
        let style = match row.mood {
            Mood::Good => Style::new(),
            Mood::Slow => Style::new().fg(Color::Yellow),
            Mood::Bad => Style::new().fg(Color::Red),
        };
        let cells = row.cells.iter().zip(columns);
        Cells::new(cells.map(|(text, (name, _))| cell(text.clone(), is_number(name)))).style(style)
    });
    // The first column takes what is left.
    let widths = columns.iter().enumerate().map(|(at, (_, width))| match at {
        0 => Constraint::Min(*width),
        _ => Constraint::Length(*width),
    });
    let table = Table::new(cells, widths)
        .header(head)
        .column_spacing(1)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let chosen = app.chosen.min(rows.len().saturating_sub(1));
    let mut state = TableState::new().with_selected((!rows.is_empty()).then_some(chosen));
    frame.render_stateful_widget(table, area, &mut state);
}

fn is_number(column: &str) -> bool {
    !matches!(column, "TOPIC" | "NODE" | "LOCK" | "STATE" | "KIND" | "HOLDER")
}

fn cell(text: String, right: bool) -> Cell<'static> {
    let alignment = if right { Alignment::Right } else { Alignment::Left };
    Cell::from(Line::from(text).alignment(alignment))
}

fn footing(app: &App) -> Line<'static> {
    let keys = match app.typing {
        true => "type a part of a name   Enter done   Esc none",
        false => "Tab view  Enter detail  Esc back  s sort  r turn  / filter  p hold  q quit",
    };
    Line::from(Span::styled(keys, Style::new().add_modifier(Modifier::DIM)))
}
