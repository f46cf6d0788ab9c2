"""The looks of the report, beyond what all pages share."""

STYLE = """
:root{--good:#1a7a45;--bad:#b3261e}
@media (prefers-color-scheme:dark){:root{--good:#63c98f;--bad:#f58d84}}
html{scroll-behavior:smooth;-webkit-text-size-adjust:100%}
@media (prefers-reduced-motion:reduce){html{scroll-behavior:auto}}
body{max-width:76rem}p{max-width:50rem}
a{color:var(--main)}
h1{font-size:1.7rem;line-height:1.2}
h2{font-size:1.3rem;line-height:1.25;margin:0 0 .4rem}
h3{font-size:1.05rem;margin:1.4rem 0 .4rem}
main>section,nav{border-top:1px solid var(--line);margin-top:2rem;padding-top:1.4rem;scroll-margin-top:.5rem}
article{margin:2rem 0 0;scroll-margin-top:.8rem}
small,.place,.files{font-size:.85rem;color:var(--soft)}
.caption{font-size:.92rem}.prose{color:var(--ink);margin:.6rem 0}
.files a{margin-right:.6rem}
nav li{margin:.5rem 0}nav li li{margin:.1rem 0}nav p{margin:0;font-size:.9rem}nav ul{padding-left:1.2rem}
details{margin:.4rem 0}summary{cursor:pointer;color:var(--soft);font-size:.9rem}
ul.verdicts{list-style:none;padding:0;margin:0}
.verdicts li{border-left:4px solid var(--soft);background:var(--panel);padding:.5rem .8rem;margin:.6rem 0;
scroll-margin-top:.8rem}
.verdicts li.good{border-color:var(--good)}.verdicts li.bad{border-color:var(--bad)}
.verdicts b{font-weight:600}.verdicts p{font-size:.92rem;color:var(--ink)}.verdicts p.why{color:var(--soft)}
.mark{white-space:nowrap;font-weight:700;font-size:.85rem;border:1px solid;border-radius:1rem;padding:.05rem .5rem;
color:var(--soft)}
.mark.good{color:var(--good)}.mark.bad{color:var(--bad)}
ul.short{padding:0;list-style:none}.short li{margin:.45rem 0}
li:target,article:target h3{outline:2px solid var(--main);outline-offset:3px}
.scroll{overflow-x:auto;max-width:100%}
.numbers{grid-template-columns:repeat(3,1fr);max-width:50rem}
table.data{border-collapse:separate;border-spacing:0;font-size:.88rem;min-width:100%;overflow-wrap:normal;
font-variant-numeric:tabular-nums}
.data th,.data td{border-bottom:1px solid var(--line);padding:.3rem .5rem;text-align:left;vertical-align:top;
font-weight:400}
.data thead th{border-bottom:2px solid var(--line);vertical-align:bottom;padding:0}
.data .number,.data .none{text-align:right;white-space:nowrap}
.data .none{color:var(--soft)}.data .short{white-space:nowrap}.data .long{min-width:12rem}
.data th:first-child{position:sticky;left:0;background:var(--page);text-align:left}
.data tbody tr:hover>*{background:var(--panel)}
.data button{all:unset;box-sizing:border-box;width:100%;min-height:2.2rem;padding:.3rem .5rem;cursor:pointer;
font-weight:600;line-height:1.25}
.data .number button{white-space:normal}
.data button:focus-visible{outline:2px solid var(--main);outline-offset:-2px}
.data button::after{content:"\\a0↕";color:var(--soft);font-weight:400;font-size:.8em}
.data [aria-sort=ascending] button::after{content:"\\a0▲";color:var(--main)}
.data [aria-sort=descending] button::after{content:"\\a0▼";color:var(--main)}
.drawing{position:relative}
.drawing svg{stroke-linejoin:round;stroke-linecap:butt;margin:0 auto}
.panels{display:none}.keys{display:flex;flex-wrap:wrap;gap:.3rem 1rem}.drawing .keys svg{max-width:100%;margin:0}
@media screen and (max-width:44rem){
body{padding:1rem}
.split .whole{position:absolute;width:0;height:0;overflow:hidden}
.panels{display:grid;gap:1rem}
nav ol{padding-left:1.4rem}
.facts td:first-child{white-space:normal;width:auto;min-width:6.5rem}
}
@media print{
:root{--page:#fff;--ink:#000;--soft:#444;--line:#ccc;--panel:#f6f6f6;--main:#000;--good:#1a7a45;--bad:#b3261e}
body{max-width:none;padding:0;font-size:11pt}
.scroll{overflow:visible}table.data{font-size:8pt}.data th,.data td,.data button{padding:.15rem .25rem}
.data button::after{content:none}
article,.verdicts li{break-inside:avoid}h2,h3{break-after:avoid}
.files{display:none}
}
"""
