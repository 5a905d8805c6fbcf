// Shows a live instance as it is, again and again, until it has ended. Without this file the page is merely still.
"use strict";
{
    const toggle = document.getElementById("wf-refresh-on");
    const told = document.getElementById("wf-refreshed");
    let timer = null;

    const later = function() {
        const seconds = Number(document.getElementById("wf-live").dataset.refresh);
        clearTimeout(timer);
        if (seconds && toggle.checked) {
            timer = setTimeout(look, seconds * 1000);
        } else if (!seconds) {
            document.getElementById("wf-refresh").hidden = true;
        }
    };

    // What the reader has opened stays open, and where the reader is stays the place.
    const replace = function(old, fresh) {
        const known = new Map([...old.querySelectorAll("details[id]")].map((part) => [part.id, part.open]));
        for (const part of fresh.querySelectorAll("details[id]")) {
            part.open = known.has(part.id) ? known.get(part.id) : part.open;
        }
        const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
        old.replaceWith(fresh);
        if (focused && document.getElementById(focused)) {
            document.getElementById(focused).focus({preventScroll: true});
        }
    };

    const isReading = function(old) {
        const selection = document.getSelection();
        return !selection.isCollapsed && old.contains(selection.anchorNode);
    };

    const look = async function() {
        const old = document.getElementById("wf-live");
        if (document.hidden || isReading(old)) {
            later();
            return;
        }
        try {
            const answer = await fetch(window.location.href, {headers: {"X-Requested-With": "XMLHttpRequest"}});
            const page = new DOMParser().parseFromString(await answer.text(), "text/html");
            const fresh = page.getElementById("wf-live");
            if (answer.ok && fresh) {
                const changed = fresh.dataset.state !== old.dataset.state;
                replace(old, document.importNode(fresh, true));
                if (changed) {
                    told.textContent = told.dataset.text + " " + new Date().toLocaleTimeString();
                }
            }
        } catch {
            // The server is away for a moment: try again.
        }
        later();
    };

    document.getElementById("wf-refresh").hidden = false;
    toggle.addEventListener("change", later);
    later();
}
