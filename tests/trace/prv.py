# SPDX-License-Identifier: MIT
"""Paraver's rules for .prv, .pcf and .row, held against three files: written from the description of the
formats, and by hand from what readers of them refuse."""
import re
from collections import defaultdict

HEADER = re.compile(r"#Paraver \(\d\d/\d\d/\d{4} at \d\d:\d\d\):(\d+)_ns:1\((\d+)\):(\d+):(.*)$")


class Refused(Exception):
    pass


def need(ok, text):
    if not ok:
        raise Refused(text)


class Paraver:
    """The three files of a stem, or Refused with the line."""

    def __init__(self, stem):
        with open(stem + ".prv", encoding="utf-8") as file:
            text = file.read()
        need(text.endswith("\n"), "the last line has no end")
        lines = text.splitlines()
        self.head(lines[0])
        self.pcf(stem + ".pcf")
        self.row(stem + ".row")
        self.states, self.events, self.messages = defaultdict(list), [], []
        self.now = 0
        for number, line in enumerate(lines[1:], 2):
            try:
                self.record([int(field) for field in line.split(":")])
            except (Refused, ValueError, KeyError, IndexError) as error:
                raise Refused(f"{stem}.prv:{number}: {line}: {error!r}") from error

    def head(self, line):
        found = HEADER.match(line)
        need(found, f"no header: {line}")
        self.duration, self.cpus = int(found[1]), int(found[2])
        applications = re.findall(r"(\d+)\(([\d:,]+)\)", found[4])
        need(len(applications) == int(found[3]), f"applications: {line}")
        need(":".join(f"{n}({tasks})" for n, tasks in applications) == found[4], f"applications: {line}")
        self.threads = {}
        for application, (count, tasks) in enumerate(applications, 1):
            tasks = tasks.split(",")
            need(len(tasks) == int(count), f"tasks: {line}")
            for task, text in enumerate(tasks, 1):
                threads, node = text.split(":")
                need(node == "1", f"node: {line}")
                self.threads.update({(application, task, i): 0 for i in range(1, int(threads) + 1)})

    def pcf(self, path):
        self.types, self.state_names, section, values = {}, {}, None, None
        with open(path, encoding="utf-8") as file:
            for line in file.read().splitlines():
                if re.match(r"[A-Z_]+$", line):
                    section = line
                    need(section in ("DEFAULT_OPTIONS", "STATES", "STATES_COLOR", "EVENT_TYPE", "VALUES"), line)
                    values = values if section == "VALUES" else None
                    need(section != "VALUES" or values is not None, "values of nothing")
                elif line and section == "STATES":
                    self.state_names[int(line[:7])] = line[7:]
                elif line and section == "STATES_COLOR":
                    need(re.match(r"\d+ +\{\d+,\d+,\d+\}$", line) and int(line.split()[0]) in self.state_names, line)
                elif line and section == "EVENT_TYPE":
                    gradient, number, name = line.split(None, 2)
                    need(gradient == "0" and int(number) not in self.types, f"a type twice: {line}")
                    values = {}
                    self.types[int(number)] = (name, values)
                elif line and section == "VALUES":
                    number, name = line.split(None, 1)
                    need(int(number) not in values, f"a value twice: {line}")
                    values[int(number)] = name

    def row(self, path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.rows = {}
        for level, size, labels in re.findall(r"LEVEL (\w+) SIZE (\d+)\n((?:.+\n)*)", text):
            self.rows[level] = labels.splitlines()
            need(len(self.rows[level]) == int(size), f"{level}: {size} labels, but {labels}")
        need(len(self.rows["CPU"]) == self.cpus and len(self.rows["THREAD"]) == len(self.threads), text)
        # labels are known by their place: the order of applications, tasks and threads
        for (application, task, thread), label in zip(self.threads, self.rows["THREAD"]):
            need((label + " ").startswith(f"THREAD {application}.{task}.{thread} "), f"the label {label}")

    def place(self, fields):
        need(1 <= fields[0] <= self.cpus, f"cpu {fields[0]} of {self.cpus}")
        thread = tuple(fields[1:4])
        need(thread in self.threads, f"no thread {thread}")
        return thread

    def moment(self, time):
        need(0 <= time <= self.duration, f"{time} of {self.duration}")
        return time

    def record(self, fields):
        thread = self.place(fields[1:5])
        need(self.moment(fields[5]) >= self.now, "time goes back")
        self.now = fields[5]
        need(all(0 <= field < 2**63 for field in fields), "a number that is none of theirs")
        if fields[0] == 1:
            need(len(fields) == 8 and fields[5] < self.moment(fields[6]), "a state that does not last")
            need(fields[5] >= self.threads[thread], "two states at once")
            self.threads[thread] = fields[6]
            self.states[thread].append((fields[5], fields[6], self.state_names[fields[7]]))
        elif fields[0] == 2:
            need(len(fields) >= 8 and len(fields) % 2 == 0, "half an event")
            for number, value in zip(fields[6::2], fields[7::2]):
                self.events.append((thread, fields[5], self.types[number][0], value))
        else:
            need(fields[0] == 3 and len(fields) == 15, "no record")
            other = self.place(fields[7:11])
            need(fields[5] <= fields[6] and fields[6] <= self.moment(fields[12]), "it is there before it is sent")
            need(fields[11] <= self.moment(fields[12]), "it is there before it is received")
            self.messages.append((thread, fields[5], other, fields[11]))
