//! Which columns a terminal has room for, and how wide each is.
//!
//! No value is cut without a sign: a column for which there is no room is left out with its
//! title, the least important first, and what is still too long ends with `…`.

use super::table::{COLUMNS, Cells};
use crate::explain::fit;

/// Columns between two values.
const SPACING: usize = 2;
/// Columns that can be left out, by number: bounds, granted, used, changed, goal.
const SPARE: [usize; 5] = [7, 6, 3, 8, 5];
/// The last column has room for a state of this length before others are left out for it.
const STATE: usize = 32;

/// The columns of a table, by number, and the width of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns(Vec<(usize, usize)>);

// === impl Columns ===

impl Columns {
    /// For these titles and rows on a terminal of this width.
    pub(super) fn of<'a>(
        titles: &Cells,
        rows: impl Iterator<Item = &'a Cells> + Clone,
        width: usize,
    ) -> Self {
        let last = COLUMNS - 1;
        let longest = |column: usize| {
            let cells = rows.clone().map(|row| row[column].chars().count());
            cells.fold(titles[column].chars().count(), usize::max)
        };
        let mut shown: Vec<(usize, usize)> = (0..COLUMNS).map(|c| (c, longest(c))).collect();
        // That by which the VMs are sorted stays.
        let is_sorted = |column: usize| titles[column].ends_with(['▲', '▼']);
        for spare in SPARE.into_iter().filter(|spare| !is_sorted(*spare)) {
            let wanted = |(column, wide): &(usize, usize)| {
                if *column == last { STATE.min(*wide) } else { *wide }
            };
            if shown.iter().map(wanted).sum::<usize>() + between(&shown) > width {
                shown.retain(|(column, _)| *column != spare);
            }
        }
        let mut columns = Self(shown);
        while columns.wide() > width
            && let Some((_, widest)) = columns.0.iter_mut().max_by_key(|(_, wide)| *wide)
            && *widest > 1
        {
            *widest -= 1;
        }
        columns
    }

    /// Those that are left out, by number.
    pub(super) fn left_out(&self) -> Vec<usize> {
        let is_shown = |column: usize| self.0.iter().any(|(shown, _)| *shown == column);
        (0..COLUMNS).filter(|column| !is_shown(*column)).collect()
    }

    /// The widths, from left to right.
    pub(super) fn widths(&self) -> impl Iterator<Item = usize> {
        self.0.iter().map(|(_, wide)| *wide)
    }

    /// The values that are shown of a row, each as long as its column.
    pub(super) fn cells<'a>(&'a self, row: &'a Cells) -> impl Iterator<Item = String> {
        self.0.iter().map(|(column, wide)| fit(&row[*column], *wide))
    }

    fn wide(&self) -> usize {
        self.widths().sum::<usize>() + between(&self.0)
    }
}

fn between(shown: &[(usize, usize)]) -> usize {
    shown.len().saturating_sub(1) * SPACING
}

#[cfg(test)]
mod tests {
    use super::super::order::{Column, Sorting};
    use super::super::table::titles;
    use super::*;

    #[test]
    fn a_wide_terminal_shows_all_of_it() {
        let columns = of(200);
        assert_eq!(left_out(200), Vec::<String>::new());
        assert_eq!(columns.cells(&row()).collect::<Vec<_>>(), row());
    }

    #[test]
    fn what_has_no_room_is_left_out_whole_or_ends_with_a_sign() {
        for width in [120, 90, 80, 60, 40, 26] {
            let columns = of(width);
            let shown: Vec<String> = columns.cells(&row()).collect();
            let line = shown.join(&" ".repeat(SPACING));
            // As much of it as there is room for.
            assert_eq!(line.chars().count(), width, "{line}");
            assert!(
                shown.iter().all(|cell| row().contains(cell) || cell.ends_with('…')),
                "{width}: {line}"
            );
        }
        let all = of(200).wide();
        // The last column is taken for 32 characters long, and has more.
        let needed = all - row()[9].chars().count() + STATE;
        assert_eq!(left_out(needed), Vec::<String>::new());
        assert_eq!(left_out(needed - 1), ["BOUNDS"]);
        assert_eq!(left_out(100), ["GRANTED", "BOUNDS"]);
        assert_eq!(left_out(80), ["USED", "GRANTED", "BOUNDS", "CHANGED"]);
        assert_eq!(left_out(60), ["USED", "GOAL", "GRANTED", "BOUNDS", "CHANGED"]);
    }

    #[test]
    fn the_column_by_which_vms_are_sorted_stays() {
        let titles = titles(Some(Sorting { by: Column::Granted, reversed: false }));
        let columns = Columns::of(&titles, [row()].iter(), 60);
        let left_out: Vec<&str> =
            columns.left_out().into_iter().map(|column| titles[column].as_str()).collect();
        assert_eq!(left_out, ["USED", "GOAL", "BOUNDS", "CHANGED"]);
        assert_eq!(columns.wide(), 60);
    }

    #[test]
    fn a_terminal_without_room_for_anything_has_a_sign_in_each_column() {
        let columns = of(3);
        assert_eq!(columns.widths().collect::<Vec<_>>(), [1; 5]);
        assert_eq!(columns.cells(&row()).collect::<Vec<_>>(), ["…"; 5]);
    }

    fn of(width: usize) -> Columns {
        Columns::of(&titles(None), [row()].iter(), width)
    }

    fn left_out(width: usize) -> Vec<String> {
        let titles = titles(None);
        of(width).left_out().into_iter().map(|column| titles[column].clone()).collect()
    }

    fn row() -> Cells {
        [
            "db1 (p5)",
            "2 of 4",
            "1.5GiB",
            "310MiB",
            "2.70",
            "3/1.5GiB",
            "2/1.5GiB",
            "1/512MiB – 4/4GiB",
            "↑ 2m ago",
            "waiting for room, 1 vCPU more; no metrics from the guest for 20s",
        ]
        .map(str::to_owned)
    }
}
